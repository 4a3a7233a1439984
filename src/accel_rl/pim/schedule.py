"""How long to train and how to merge."""

from typing import NamedTuple


class Schedule(NamedTuple):
    """How long to train and how to merge; static.

    Attributes:
      passes: passes over every chunk (the papers' episodes), at least 1.
      period: passes between two merges, tau, at least 1. The last pass always merges.
      merge: one of `pim.MERGES`.
    """

    passes: int
    period: int = 1
    merge: str = "visits"


SWIFTRL = Schedule(passes=2_000, period=50, merge="mean")
"""SwiftRL's schedule as its authors' setting is remembered; not checked against the paper."""
