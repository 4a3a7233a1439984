"""What is set before jax is imported, and what is left as the user set it."""

import os
import subprocess
import sys

import pytest

from accel_rl.cli import runtime


@pytest.fixture
def fresh(monkeypatch):
    """An environment without settings, in a process that seems not to have imported jax."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.delitem(sys.modules, "jax")
    return monkeypatch


def test_defaults(fresh):
    runtime.prepare_jax()
    flag = f"--xla_force_host_platform_device_count={runtime.core_count()}"
    assert os.environ["XLA_FLAGS"] == flag


@pytest.mark.parametrize(("threads", "devices"), [("1", 1), ("3", 3), ("0", None), ("all", None)])
def test_as_many_devices_as_threads(fresh, threads, devices):
    fresh.setenv("PJRT_NPROC", threads)
    runtime.prepare_jax()
    assert os.environ["XLA_FLAGS"].endswith(f"={devices or runtime.core_count()}")


def test_what_the_user_set_stays(fresh):
    flags = "--xla_force_host_platform_device_count=3 --xla_dump_to=/x"
    fresh.setenv("XLA_FLAGS", flags)
    runtime.prepare_jax()
    assert os.environ["XLA_FLAGS"] == flags


def test_other_flags_are_kept(fresh):
    fresh.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    runtime.prepare_jax()
    assert os.environ["XLA_FLAGS"].startswith("--xla_dump_to=/x --xla_force_host")


def test_nothing_once_jax_is_imported(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")
    runtime.prepare_jax()
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.long  # imports in a process of its own
def test_gymnax_comes_without_what_draws():
    """Stand-ins are gone once it is there, and those it kept import themselves when used."""
    program = """
import sys
from accel_rl.cli import runtime
runtime.import_gymnax()
assert "gymnax" in sys.modules
heavy = ("matplotlib.pyplot", "seaborn", "pandas", "scipy.stats")
assert not [name for name in heavy if name in sys.modules]
from gymnax.environments.bsuite import catch
assert callable(catch.plt.figure)
import matplotlib.pyplot
assert catch.plt.figure is matplotlib.pyplot.figure
"""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
