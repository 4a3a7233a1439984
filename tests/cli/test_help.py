"""Help, start-up, and names that the help repeats."""

import shlex
import subprocess
import sys
from typing import get_args

import pytest
import typer.main
from commands import as_json, invoke, succeed

from accel_rl import __version__, pim, tabular
from accel_rl.cli import arguments
from accel_rl.cli.app import app
from accel_rl.pim.backends import NAMES as BACKENDS
from accel_rl.tabular.numerics import FACTORIES
from accel_rl.tabular.orders import NAMES as ORDERS

ROOT = typer.main.get_command(app)
COMMANDS = [
    *((name,) for name in ROOT.commands),
    ("envs", "show"),
    *(("train", name) for name in ROOT.commands["train"].commands),
]


def command(path):
    found = ROOT
    for name in path:
        found = found.commands[name]
    return found


def examples(path):
    """The example lines in a command's help."""
    lines = command(path).epilog.splitlines()
    return [line[3:-1] for line in lines if line.startswith("- `")]


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
def test_help_has_examples_that_parse(path):
    assert "Examples:" in succeed(*path, "--help")
    assert examples(path)
    for example in examples(path):
        name, *words = shlex.split(example)
        assert name == "accel-rl"
        callee = ROOT
        while words and words[0] in getattr(callee, "commands", {}):
            callee = callee.commands[words.pop(0)]
        if callee is ROOT.commands["train"]:  # what is no agent's name is a log
            callee = callee.commands["log"]
        callee.make_context(example, words, resilient_parsing=False).close()


def test_bare_command_shows_help_and_version_is_known():
    assert "Usage: accel-rl" in succeed()
    assert succeed("--version").strip() == f"accel_rl {__version__}"


@pytest.mark.parametrize(
    ("literal", "names"),
    [
        (arguments.Rule, tabular.RULES),
        (arguments.Numerics, FACTORIES),
        (arguments.OrderName, ORDERS),
        (arguments.Merge, pim.MERGES),
        (arguments.BackendName, BACKENDS),
    ],
)
def test_choices_are_the_library_s_names(literal, names):
    assert get_args(literal) == tuple(names)


def test_help_imports_nothing_heavy():
    program = """
import sys
from accel_rl.cli.app import app
for words in (["--help"], ["train", "--help"]):
    app(words, standalone_mode=False)
heavy = ("jax", "numpy", "matplotlib", "gymnax", "pim_emu")
sys.exit(", ".join(name for name in heavy if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_module_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "accel_rl", "nonsense"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "accel-rl: No such command 'nonsense'.\n"


def test_envs_lists_and_draws():
    listed = {each["name"]: each for each in as_json("envs")}
    assert listed["Taxi-v3"] == {
        "name": "Taxi-v3",
        "source": "accel_rl",
        "states": 500,
        "actions": 6,
        "time_limit": 200,
    }
    assert {"name": "CartPole-v1", "source": "gymnax"} in as_json("envs", "--gymnax")
    assert "CliffWalking-v1" in succeed("envs")
    picture = succeed("envs", "show", "Taxi-v3", "--passenger", "taxi", "--destination", "B")
    assert "passenger in the taxi, destination B" in picture
    assert "\x1b" not in picture  # no colours into a pipe
    assert as_json("envs", "show", "FrozenLake-v1")["map"] == ["SFFF", "FHFH", "FFFH", "HFFG"]


def test_doctor_says_what_is_absent_and_why():
    report = as_json("doctor")
    backends = {backend["name"]: backend for backend in report["backends"]}
    assert backends["jax"]["present"]
    upmem = backends["upmem"]
    assert ("DPU programs" if upmem["present"] else "is absent: ") in upmem["why"]
    assert len(report["devices"]) == 8
    assert report["versions"]["accel_rl"] == __version__
    assert "upmem-2560" in report["modelled_machines"]
    listed = [*report["backends"], *report["transports"], *report["optional"]]
    assert all(each["present"] or each["why"] for each in listed)
    printed = invoke("doctor").stdout
    assert sum(not each["present"] for each in listed) <= printed.count("absent")
    for part in report["optional"]:
        assert part["present"] or f"absent: {part['package']}" in printed
