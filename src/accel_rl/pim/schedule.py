"""Schedule of training on DPUs."""

from typing import NamedTuple


class MergeSchedule(NamedTuple):
    """Passes and merges of a training; static.

    Attributes:
      passes: passes over every chunk ("episodes" in the papers), at least 1.
      period: passes between two merges, tau, at least 1; the last pass is always merged.
      merge: one of `pim.MERGES`.
    """

    passes: int
    period: int = 1
    merge: str = "visits"


SWIFTRL = MergeSchedule(passes=2_000, period=50, merge="mean")
"""SwiftRL's schedule, as recalled; not checked against the paper."""
