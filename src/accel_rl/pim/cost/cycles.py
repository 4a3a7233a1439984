"""Modelled cycles of a DPU, by activity."""

import dataclasses

from accel_rl.pim.cost.instructions import load_calibration
from pim_emu.machine import Machine


@dataclasses.dataclass(frozen=True)
class KernelCycles:
    """Modelled cycles of a DPU, by activity.

    Attributes:
      target: cycles of decoding records, computing targets and listing updates; none by owner.
      apply: cycles of following lists and moving entries towards their targets; by owner of whole
        updates.
      share: cycles of finding shares, going to them and reading ahead, once a block; by owner of
        lanes, runs and reading.
      barrier: cycles of barriers.
      random: cycles of RAN's permutations, and of jumps in random streams.
      mram_wait: cycles of reading rows that no instructions hide.
      tables: cycles of moving tables, or what is exchanged by owner, between MRAM and WRAM.
    """

    target: float = 0.0
    apply: float = 0.0
    share: float = 0.0
    barrier: float = 0.0
    random: float = 0.0
    mram_wait: float = 0.0
    tables: float = 0.0

    @property
    def total(self) -> float:
        """All cycles."""
        return sum(dataclasses.astuple(self))

    def __add__(self, other: "KernelCycles") -> "KernelCycles":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return KernelCycles(*(mine + theirs for mine, theirs in pairs))

    def __mul__(self, factor: int) -> "KernelCycles":
        return KernelCycles(*(factor * part for part in dataclasses.astuple(self)))


def barrier_cycles(machine: Machine, tasklets: int) -> float:
    """Return the cycles of a barrier that all tasklets execute."""
    return max(tasklets, machine.pipeline_reissue) * load_calibration()["barrier"]
