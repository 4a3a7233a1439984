"""Cache folder of the library, for compiled programs, builds, measured costs and forms.

This module imports little, because `import accel_rl` imports it.
"""

import os
import sys
from pathlib import Path

VARIABLE = "ACCEL_RL_CACHE"  # path of another folder
_JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_JAX_LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
# Tabular programs compile in 0.5 to 2 s; by default, jax caches only those above 1 s.
LEAST_SECONDS = 0.2


def cache_folder() -> Path:
    """Return `$ACCEL_RL_CACHE`, else `accel_rl` in `$XDG_CACHE_HOME` or, if unset, `~/.cache`."""
    own = os.environ.get(VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(own) if own else Path(base) / "accel_rl").expanduser().resolve()


def compilation_folder() -> Path:
    """Return the folder of compiled programs: JAX_COMPILATION_CACHE_DIR, or a default."""
    named = os.environ.get(_JAX_VARIABLE)
    return Path(named) if named else cache_folder() / "jax"


def keep_compilations() -> None:
    """Let JAX keep compiled programs in the cache folder, so that a script compiles once.

    What the user has set stays: a folder, or no cache by an empty JAX_COMPILATION_CACHE_DIR.
    Without a folder that can be written, nothing is kept.
    """
    if _JAX_VARIABLE in os.environ:
        return
    directory = compilation_folder()
    jax = sys.modules.get("jax")
    if jax is not None and (
        getattr(jax, "config", None) is None or jax.config.jax_compilation_cache_dir is not None
    ):
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if jax is None:
        os.environ[_JAX_VARIABLE] = str(directory)
        os.environ.setdefault(_JAX_LEAST_SECONDS, str(LEAST_SECONDS))
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    if _JAX_LEAST_SECONDS not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
