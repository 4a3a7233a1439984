"""Exceptions of UPMEM DPUs."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax


class UpmemError(RuntimeError):
    """Failure on the DPUs, or before they were reached.

    Attributes:
      status: `dpu_error_t` that the host library returned; 0 if it was not called.
      dpu: index of the DPU in its set; None if the failure is not of a single DPU.
      log: output that the DPU had printed.
    """

    def __init__(self, message: str, *, status: int = 0, dpu: int | None = None, log: str = ""):
        super().__init__(message)
        self.status, self.dpu, self.log = status, dpu, log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


class DpuFault(UpmemError):
    """Fault of a DPU; `dpu` is the first DPU that stopped, `log` its output."""


class RankLost(UpmemError):
    """Failure of a rank: driver, timeout, corrupted memory, disabled DPU."""


class TooFewDpus(UpmemError):
    """Fewer free DPUs than requested."""


class TooLarge(UpmemError, ValueError):
    """Program that exceeds IRAM or WRAM, or chunk or keys that exceed the MRAM."""


class SdkMissing(UpmemError, ValueError):
    """Missing SDK, tools or sources for DPU programs; the message says what to install."""


class BuildFailed(UpmemError):
    """Failure of a compiler or CMake on accel_rl's sources; the message holds its output."""


class InvalidRows(UpmemError, ValueError):
    """Traced rows with an index outside the tables, or a chunk length out of range."""


# Keys are values of Kind in kernels/upmem/host/error.hpp.
BY_KIND: dict[int, type[UpmemError]] = {
    1: InvalidRows,
    2: DpuFault,
    3: RankLost,
    4: TooFewDpus,
    5: TooLarge,
    6: UpmemError,
}


@contextlib.contextmanager
def translated(translate: Callable[[Exception], Exception | None]) -> Iterator[None]:
    """Replace jax's errors by what `translate` returns for them, unless that is None."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        known = translate(error)
        if known is None:
            raise
        raise known from error
