"""The command for accelerators, tried on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "accelerator.py"
NEEDED = ("jax", "flax", "optax", "chex", "gymnax", "six", "pydantic", "rich")
OPTIONAL = ("jinja2", "flashbax", "brax")
CORRECT = ("samplers", "searches", "training-correct", "tabular-correct", "pipelined")
# Python imports a module of this name before all else, in the processes of parts too.
REFUSING = """
import os, re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def plain(name):
    return re.sub("[-_.]+", "-", name).lower()

allowed, found = {"accel-rl", "pim-emu"}, os.environ["PACKAGES"].split()
while found:
    name = plain(found.pop())
    if name not in allowed:
        allowed.add(name)
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            needs = []
        found += [re.match(r"[\\w.-]+", each)[0] for each in needs if "extra ==" not in each]
refused = {
    module for module, names in packages_distributions().items()
    if allowed.isdisjoint(map(plain, names))
}

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
"""


def python(folder, *arguments, packages=NEEDED):
    """Run Python with these packages and their requirements, as one JAX device, from a folder."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(REFUSING)
    # flashbax and the plain loop promote types as JAX does by default. Most of it is compilation.
    usual = {k: v for k, v in os.environ.items() if not k.startswith("JAX_NUMPY")}
    usual["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    usual |= {"PYTHONPATH": str(folder / "site"), "PACKAGES": " ".join(packages)}
    subprocess.run([sys.executable, *arguments], check=True, cwd=folder, env=usual)


def dry_run(folder, option, packages):
    """Run the correctness parts, or all but them, and return the report, whose claims hold."""
    options = [word for part in CORRECT for word in (option, part)]
    command = (SCRIPT, "--dry-run", *options, "--out", folder / "found")
    python(folder, *command, packages=packages)
    report = json.loads((folder / "found" / "accelerator.json").read_text())
    failed = [claim["claim"] for claim in report["claims"] if claim["holds"] is not True]
    assert failed == []
    assert not list((folder / "found").glob("*.part"))
    return report


@pytest.mark.long
def test_correctness_parts(tmp_path):
    """Each part is a process that compiles. Away from the repository, as on a new machine."""
    report = dry_run(tmp_path, "--only", NEEDED)
    assert len(report["claims"]) > 50
    assert report["machine"]["accelerator"] == "cpu (cpu)"


@pytest.mark.long
def test_speed_parts(tmp_path):
    report = dry_run(tmp_path, "--skip", (*NEEDED, *OPTIONAL))
    found = {(each["case"].split(",")[0], each["system"]) for each in report["records"]}
    assert {("PER step in a scan", f"accel_rl PER, {form}") for form in ("wide", "pallas")} <= found
    assert ("DQN on CartPole-v1", "plain loop") in found
    metrics = {each["metric"] for each in report["records"]}
    assert {f"share of the rate of {limit}" for limit in ("matrix products", "copies")} <= metrics
    for name in ("accelerator.png", "report.html"):
        assert (tmp_path / "found" / name).stat().st_size > 10_000


def test_parts_import_with_the_packages_that_are_named(tmp_path):
    """The composer's configuration too, which reads docstrings where their parser is installed."""
    code = f"""
import sys
try:
    import docstring_parser
except ImportError:
    pass
else:
    raise AssertionError("packages that are not named must not be found")
sys.path.insert(0, {str(SCRIPT.parent)!r})
import accelerator, tabular_systems
from accel_rl import compose, datasets, experiment
experiment.load(agent="dqn", environment="CartPole-v1", command="compose")
"""
    python(tmp_path, "-c", code)


def test_a_part_that_fails_leaves_what_was_measured_and_says_so(tmp_path):
    """A part of no time at all measures nothing; the report is written all the same."""
    command = [sys.executable, SCRIPT, "--dry-run", "--only", "searches", "--seconds", "0"]
    subprocess.run([*command, "--out", tmp_path], check=True)
    report = json.loads((tmp_path / "accelerator.json").read_text())
    assert [(claim["claim"], claim["holds"]) for claim in report["claims"]] == [
        ("searches: no time was left", None)
    ]


def test_a_case_without_time_is_a_claim_without_a_value(tmp_path):
    """The process of a part whose time is over when it begins."""
    path = tmp_path / "searches.part"
    command = [sys.executable, SCRIPT, "--dry-run", "--part", "searches", "--out", path]
    subprocess.run([*command, "--seconds", "0"], check=True)
    claims = json.loads(path.read_text())["claims"]
    assert len(claims) == 12
    assert {claim["holds"] for claim in claims} == {None}
    assert claims[0]["claim"] == "search by radii, uint32, xla: no time was left"
