"""Start-up of commands: settings that jax reads at its first import, and slow imports."""

import importlib
import os
import sys
import types

from accel_rl.io.machine import core_count

_DEVICE_FLAG = "--xla_force_host_platform_device_count"
_THREADS = "PJRT_NPROC"  # XLA's variable for the threads that a CPU computes with


def prepare_jax() -> None:
    """Configure jax with one CPU device per core, or per thread that PJRT_NPROC allows.

    XLA takes at least a thread for each device. A variable that the user has set stays. Once jax is
    imported this does nothing, because jax no longer reads it.
    """
    if "jax" in sys.modules:
        return
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_FLAG not in flags:
        threads = os.environ.get(_THREADS, "")
        count = int(threads) if threads.isdecimal() and int(threads) else core_count()
        os.environ["XLA_FLAGS"] = f"{flags} {_DEVICE_FLAG}={count}".strip()


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
