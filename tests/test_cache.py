"""Folder of compiled programs, by the package's import alone, and the user's own settings."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from accel_rl import cache

NAMES = (
    *("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"),
    *("ACCEL_RL_CACHE", "XDG_CACHE_HOME"),
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
    cache.keep_compilations()
    assert Path(os.environ["JAX_COMPILATION_CACHE_DIR"]) == tmp_path / ".cache/accel_rl/jax"
    assert os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "0.2"
    assert (tmp_path / ".cache/accel_rl/jax").is_dir()


@pytest.mark.parametrize("named", ["mine", ""])
def test_what_the_user_set_stays(fresh, named):
    fresh.setenv("JAX_COMPILATION_CACHE_DIR", named)
    cache.keep_compilations()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == named
    assert "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ


def test_folders(fresh, tmp_path):
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache.compilation_folder() == tmp_path / "cache/accel_rl/jax"
    fresh.setenv("ACCEL_RL_CACHE", str(tmp_path / "ours"))
    assert cache.compilation_folder() == tmp_path / "ours/jax"
    fresh.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "mine"))
    assert cache.compilation_folder() == tmp_path / "mine"


def test_no_cache_where_none_can_be_written(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache.keep_compilations()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_jax_that_is_there_already_is_configured(fresh, tmp_path):
    fresh.setitem(sys.modules, "jax", jax)
    before = jax.config.jax_compilation_cache_dir
    seconds = jax.config.jax_persistent_cache_min_compile_time_secs
    try:
        jax.config.update("jax_compilation_cache_dir", "theirs")
        cache.keep_compilations()
        assert jax.config.jax_compilation_cache_dir == "theirs"
        jax.config.update("jax_compilation_cache_dir", None)
        cache.keep_compilations()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / ".cache/accel_rl/jax")
        assert jax.config.jax_persistent_cache_min_compile_time_secs == 0.2
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)


@pytest.mark.long  # starts two processes
@pytest.mark.parametrize("first", ["import accel_rl, jax", "import jax, accel_rl"])
def test_a_script_keeps_what_it_compiles(first, tmp_path):
    program = f"""
{first}
import jax.numpy as jnp
def slow(x):
    for _ in range(300):
        x = jnp.sort(jnp.sin(x) @ x)
    return x
jax.jit(slow)(jnp.ones((9, 9)))
"""
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    environment = {**kept, "ACCEL_RL_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=120)
    assert list((tmp_path / "jax").iterdir())
