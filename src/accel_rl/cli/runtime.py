"""Start-up of commands: settings that jax reads at its first import, and slow imports."""

import importlib
import os
import sys
import types
from pathlib import Path

from accel_rl.io.cache import cache_folder
from accel_rl.io.machine import core_count

_DEVICE_FLAG = "--xla_force_host_platform_device_count"
_CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_CACHE_LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def prepare_jax() -> None:
    """Configure jax with one CPU device per core and a persistent compilation cache.

    Variables that the user has set stay. Once jax is imported this does nothing, because jax no
    longer reads them.
    """
    if "jax" in sys.modules:
        return
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_FLAG not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_DEVICE_FLAG}={core_count()}".strip()
    if _CACHE_VARIABLE not in os.environ:
        directory = cache_directory()
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:  # a read-only home: no persistent cache
            return
        os.environ[_CACHE_VARIABLE] = str(directory)
        # Tabular programs compile in 0.5 to 2 s; by default, jax caches only those above 1 s.
        os.environ.setdefault(_CACHE_LEAST_SECONDS, "0.2")


def cache_directory() -> Path:
    """Return the folder of the compilation cache: JAX_COMPILATION_CACHE_DIR, or a default."""
    named = os.environ.get(_CACHE_VARIABLE)
    if named:
        return Path(named)
    return cache_folder() / "jax"


def import_gymnax() -> None:
    """Import gymnax in a tenth of the time.

    Some of its modules import pyplot and seaborn for drawing, which import pandas and SciPy.
    Placeholders, which import these modules on first use, replace them during the import.
    """
    if "gymnax" in sys.modules:
        return
    names = [name for name in ("matplotlib.pyplot", "seaborn") if name not in sys.modules]
    sys.modules.update({name: _StandIn(name) for name in names})
    try:
        importlib.import_module("gymnax")
    finally:
        for name in names:
            if isinstance(sys.modules.get(name), _StandIn):
                del sys.modules[name]


class _StandIn(types.ModuleType):
    """Placeholder that imports its module on the first use of an attribute."""

    def __getattr__(self, attribute: str) -> object:
        name = self.__name__
        if attribute.startswith("__"):  # asked by code that inspects all modules
            raise AttributeError(attribute)
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)
