"""Backends that train chunks: contract, implementations and selection."""

import jax

from accel_rl import native
from accel_rl.arguments import one_of
from accel_rl.pim.backends.contract import Backend
from accel_rl.pim.backends.cpu import cpu_backend
from accel_rl.pim.backends.emulated import jax_backend
from accel_rl.pim.backends.upmem import DEFAULT_TASKLETS, upmem_backend
from accel_rl.pim.upmem.errors import SdkMissing
from accel_rl.tabular.program import PassProgram

__all__ = [
    "DEFAULT_TASKLETS",
    "NAMES",
    "Backend",
    "cpu_backend",
    "jax_backend",
    "select_backend",
    "upmem_backend",
]

NAMES = ("auto", "jax", "cpu", "upmem")


def select_backend(
    backend: str | Backend,
    program: PassProgram | None = None,
    *,
    tasklets: int = DEFAULT_TASKLETS,
    machine: str | None = None,
) -> Backend:
    """Return the backend with a name, or the backend itself.

    Args:
      backend: backend or its name; "auto" is the fastest that is present and runs the program:
        "cpu" if jax's default platform is the CPU, else "jax".
      program: program that the backend must run, if known.
      tasklets: tasklets per DPU, for "upmem".
      machine: machine, for "upmem"; see `upmem_backend`.
    """
    if isinstance(backend, Backend):
        chosen = backend
    elif backend == "upmem":
        try:
            chosen = upmem_backend(tasklets, machine)
        except SdkMissing as error:
            text = f"backend 'upmem' is absent: {error}; or use 'cpu', 'jax' or 'auto'"
            raise SdkMissing(text) from error
    else:
        chosen = _by_name(backend, program)
    reason = chosen.unsupported(program) if program is not None else None
    if reason:
        raise ValueError(f"backend {chosen.name!r}: {reason}; use 'jax' or 'auto'")
    return chosen


def _by_name(name: str, program: PassProgram | None) -> Backend:
    one_of("backend", name, NAMES)
    if name == "cpu":
        try:
            return cpu_backend()
        except native.KernelsAbsent as error:
            raise ValueError(f"backend 'cpu' is absent: {error}; or use 'jax' or 'auto'") from error
    if name == "auto" and jax.default_backend() == "cpu" and native.why_absent() is None:
        fast = cpu_backend()
        if program is None or fast.unsupported(program) is None:
            return fast
    return jax_backend()
