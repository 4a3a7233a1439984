"""What can go wrong on DPUs, as exceptions."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax

_NUMBER = re.compile(r"upmem \[error (\d+)\]")


class UpmemError(RuntimeError):
    """Something failed on the DPUs or on the way to them.

    Attributes:
      status: what the host library returned, of its `dpu_error_t`; 0: it was not asked.
      dpu: index of the DPU in its set; None: no single one.
      log: what that DPU had printed.
    """

    def __init__(self, message: str, *, status: int = 0, dpu: int | None = None, log: str = ""):
        super().__init__(message)
        self.status, self.dpu, self.log = status, dpu, log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args, self.__dict__


class DpuFault(UpmemError):
    """A DPU stopped; `dpu` is the first that did, `log` is its."""


class RankLost(UpmemError):
    """A rank does not answer as it should: driver, timeout, corrupted memory, disabled DPU."""


class TooFewDpus(UpmemError):
    """Fewer DPUs are free than were asked for."""


class TooLarge(UpmemError, ValueError):
    """A program exceeds IRAM or WRAM, or the rows of a chunk, or keys, exceed the MRAM."""


class SdkMissing(UpmemError, ValueError):
    """There is nothing to build DPU programs with; the message says what to install."""


class BuildFailed(UpmemError):
    """A compiler or CMake failed on what comes with accel_rl; the message holds what it said."""


class InvalidRows(UpmemError, ValueError):
    """Traced rows point outside the tables, or a chunk's length is out of its range."""


# By Kind of kernels/upmem/host/error.hpp.
BY_KIND: dict[int, type[UpmemError]] = {
    1: InvalidRows,
    2: DpuFault,
    3: RankLost,
    4: TooFewDpus,
    5: TooLarge,
    6: UpmemError,
}


def error_number(error: BaseException) -> int | None:
    """The number by which the host keeps what it knows of an error that jax raised."""
    found = _NUMBER.search(str(error))
    return int(found[1]) if found else None


@contextlib.contextmanager
def translated(translate: Callable[[Exception], Exception | None]) -> Iterator[None]:
    """Raises in place of jax's errors what `translate` makes of them, where that is not None."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        known = translate(error)
        if known is None:
            raise
        raise known from error
