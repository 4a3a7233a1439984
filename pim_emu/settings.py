"""Emulator settings of this process."""

import numbers
from typing import Literal

import numpy as np

from pim_emu import host_library as lib
from pim_emu.arguments import shown, whole

_MOST = 2**53  # the library takes them as doubles


def configure(
    *,
    seed: int | None = None,
    random: bool | None = None,
    checks: bool | None = None,
    dma: Literal["hardware", "strict"] | None = None,
    timeout_seconds: float | None = None,
    quiet: bool | None = None,
) -> None:
    """Set options of this process's later launches; None leaves an option unchanged.

    The initial values are those of the environment variables named below.

    Args:
      seed: seed of the order in which tasklets run, from 0 to 2**53 (`PIM_EMU_SEED`).
      random: if True, any ready tasklet may run, whatever its clock, and modelled cycles are
        meaningless; if False, tasklets run in the order of their modelled clocks
        (`PIM_EMU_SCHEDULE`, "random" or "time").
      checks: check that no barrier meets more tasklets than it was made for (`PIM_EMU_CHECKS`).
      dma: "hardware": transfers with sizes or addresses that the documentation forbids do what a
        DPU does, with a warning; "strict": they are faults (`PIM_EMU_DMA`).
      timeout_seconds: seconds until a tasklet that calls nothing is stopped; 0 for never
        (`PIM_EMU_TIMEOUT`).
      quiet: suppress messages on stderr (`PIM_EMU_QUIET`).

    Raises:
      TypeError: if a value is of another type; nothing is set.
      ValueError: if a number is out of range; nothing is set.
    """
    given: dict[str, float] = {}
    if seed is not None:
        given["seed"] = whole("seed", seed, 0, _MOST)
    if timeout_seconds is not None:
        given["timeout_seconds"] = _seconds(timeout_seconds)
    if dma is not None:
        if dma not in ("hardware", "strict"):
            raise ValueError(f'dma must be "hardware" or "strict", got {shown(dma)}')
        given["strict_dma"] = dma == "strict"
    for name, value in (("random", random), ("checks", checks), ("quiet", quiet)):
        if value is not None:
            given[name] = _truth(name, value)
    for name, number in given.items():
        lib.call("pim_emu_set", name.encode(), float(number))


def _seconds(value: float) -> float:
    expected = f"timeout_seconds must be a number from 0 to {_MOST}, got {shown(value)}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(expected)
    if not 0 <= value <= _MOST:  # NaN is not
        raise ValueError(expected)
    return float(value)


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)
