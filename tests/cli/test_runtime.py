"""What is set before jax is imported, and what is left as the user set it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_rl.cli import runtime

NAMES = (
    "XLA_FLAGS",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "ACCEL_RL_CACHE",
    "XDG_CACHE_HOME",
)


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """An environment without settings, in a process that seems not to have imported jax."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "jax")
    return monkeypatch


def test_defaults(fresh, tmp_path):
    runtime.prepare_jax()
    flag = f"--xla_force_host_platform_device_count={runtime.core_count()}"
    assert os.environ["XLA_FLAGS"] == flag
    assert Path(os.environ["JAX_COMPILATION_CACHE_DIR"]) == tmp_path / ".cache/accel_rl/jax"
    assert (tmp_path / ".cache/accel_rl/jax").is_dir()


def test_what_the_user_set_stays(fresh, tmp_path):
    flags = "--xla_force_host_platform_device_count=3 --xla_dump_to=/x"
    fresh.setenv("XLA_FLAGS", flags)
    fresh.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "mine"))
    runtime.prepare_jax()
    assert os.environ["XLA_FLAGS"] == flags
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "mine")
    assert runtime.cache_directory() == tmp_path / "mine"


def test_other_flags_are_kept_and_xdg_is_followed(fresh, tmp_path):
    fresh.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runtime.prepare_jax()
    assert os.environ["XLA_FLAGS"].startswith("--xla_dump_to=/x --xla_force_host")
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(tmp_path / "cache/accel_rl/jax")
    fresh.setenv("ACCEL_RL_CACHE", str(tmp_path / "ours"))
    fresh.delenv("JAX_COMPILATION_CACHE_DIR")
    assert runtime.cache_directory() == tmp_path / "ours" / "jax"


def test_no_cache_where_none_can_be_written(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    runtime.prepare_jax()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


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
