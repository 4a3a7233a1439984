"""Start-up: settings that jax reads once, at its first import, and imports that are slow."""

import importlib
import os
import sys
import types
from pathlib import Path
from typing import Any

from accel_rl.io.cache import cache_folder
from accel_rl.io.machine import core_count

_DEVICE_FLAG = "--xla_force_host_platform_device_count"
_CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_CACHE_LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def prepare_jax() -> None:
    """Gives jax one CPU device for each core, and a compilation cache that outlives the process.

    What the user has set in the environment stays. Does nothing once jax is imported, because it
    would no longer be read.
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
        except OSError:  # a read-only home: compile anew each time
            return
        os.environ[_CACHE_VARIABLE] = str(directory)
        # Tabular programs compile in half a second to two; jax keeps only those above one.
        os.environ.setdefault(_CACHE_LEAST_SECONDS, "0.2")


def cache_directory() -> Path:
    """Where compiled programs are kept, unless JAX_COMPILATION_CACHE_DIR says otherwise."""
    named = os.environ.get(_CACHE_VARIABLE)
    if named:
        return Path(named)
    return cache_folder() / "jax"


def import_gymnax() -> None:
    """Imports gymnax in a tenth of the time.

    Some of its modules import what they draw with, pyplot and seaborn, which bring pandas and
    SciPy. Modules that import themselves on first use stand in for these meanwhile.
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
    """What `import` gives for a module that is imported only when it is used."""

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        if attribute.startswith("__"):  # asked by who looks through all modules
            raise AttributeError(attribute)
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)
