"""What starting costs: which packages are imported when, and processor time beside jax's own."""

import importlib.metadata
import resource
import statistics
import subprocess
import sys
import types

import pytest

import accel_rl

HEAVY = (
    *("jax", "numpy", "scipy", "flax", "optax", "chex", "orbax", "tensorstore", "gymnax"),
    *("gymnasium", "matplotlib", "minari", "pandas", "ray", "tensorboardX", "wandb", "pim_emu"),
)
LIBRARY = "from accel_rl import agents, envs, replay, train"
HELP = "import sys; sys.argv = ['accel-rl', '--help']; from accel_rl.cli import main; main()"


def spent(program):
    """Processor seconds, user and system, of a fresh interpreter that runs a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("import accel_rl; dir(accel_rl)", set()),
        (HELP, set()),
        (LIBRARY, {"jax", "numpy", "flax", "optax"}),
    ],
    ids=["package", "help", "library"],
)
def test_imports_no_more_than_it_needs(program, needed):
    program = f"import sys, atexit\natexit.register(lambda: print(*sys.modules))\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    assert set(HEAVY) & set(done.stdout.splitlines()[-1].split()) == needed


@pytest.mark.long  # starts twelve processes
def test_starting_costs_little_beside_jax():
    """Medians of interleaved processes, so that load from outside falls on all alike."""
    programs = {"jax": "import jax", "package": "import accel_rl", "help": HELP, "library": LIBRARY}
    rounds = [{name: spent(program) for name, program in programs.items()} for _ in range(3)]
    median = {name: statistics.median(each[name] for each in rounds) for name in programs}
    assert median["package"] < 0.25 * median["jax"], median  # the interpreter's own start
    assert median["help"] < 0.8 * median["jax"], median
    assert median["library"] < 2.5 * median["jax"], median


def test_folders_are_imported_when_first_used():
    names = [name for name in accel_rl.__all__ if name != "__version__"]
    assert set(names) <= set(dir(accel_rl))
    for name in names:
        found = getattr(accel_rl, name)
        assert isinstance(found, types.ModuleType)
        assert found.__name__ == f"accel_rl.{name}"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = accel_rl.nonsense


def test_version_is_the_one_that_was_installed():
    assert accel_rl.__version__ == importlib.metadata.version("accel-rl")
    command = [sys.executable, "-m", "accel_rl", "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"accel_rl {accel_rl.__version__}\n"
