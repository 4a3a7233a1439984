"""Sizes of a partition by owner, counted in a log: runs, lanes and needed values.

Rows are sorted stably by entry e = s * A + a and cut into one slice for each DPU; each slice is cut
into lanes. The rows of an entry in a lane are a run. A DPU gets the starting value of each of its
runs and the values of the next states of its rows, and returns its runs' values.
"""

import dataclasses

import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.cost.workload import OwnerExchange, split_rows


@dataclasses.dataclass(frozen=True, eq=False)
class SortedLog:
    """Log sorted by entry, of which exchanges are counted; `sort_log` makes it.

    Attributes:
      entries: [N] s * A + a, ascending.
      next_rows: [N] s', or S where the episode ended, in the same order.
    """

    entries: np.ndarray
    next_rows: np.ndarray

    def exchange(self, dpus: int, lanes: int = 16) -> OwnerExchange:
        """Count the exchange of `dpus` DPUs with `lanes` lanes each.

        Args:
          dpus: D, from 1 to N.
          lanes: L, at least 1.
        """
        runs = count_runs(self.entries, dpus, lanes)
        ends = np.cumsum(split_rows(len(self.entries), dpus))
        needed = max(len(np.unique(rows)) for rows in np.split(self.next_rows, ends[:-1]))
        return OwnerExchange(int(runs.max()), needed, int(runs.sum()), lanes)


def sort_log(entries: np.ndarray, next_rows: np.ndarray) -> SortedLog:
    """Sort a log by entry, stably.

    Args:
      entries: [N] s * A + a, from 0.
      next_rows: [N] s', or S where the episode ended.
    """
    entries, next_rows = np.asarray(entries), np.asarray(next_rows)
    for name, column in (("entries", entries), ("next_rows", next_rows)):
        if column.shape != (len(entries),) or not np.issubdtype(column.dtype, np.integer):
            raise ValueError(f"{name} must be int [N], got {column.dtype} {column.shape}")
    order = stable_order(entries)
    return SortedLog(entries[order], next_rows[order])


def stable_order(entries: np.ndarray) -> np.ndarray:
    """Return the order [N] that sorts entries, at least 0, stably."""
    # NumPy sorts 16-bit integers by radix, ten times faster.
    narrow = len(entries) > 0 and entries.max() < 2**16
    return np.argsort(entries.astype(np.uint16) if narrow else entries, kind="stable")


def count_runs(entries: np.ndarray, dpus: int, lanes: int) -> np.ndarray:
    """Count the runs of each of `dpus` slices of sorted entries [N], int [D]."""
    whole("lanes", lanes, 1)
    sizes = np.asarray(split_rows(len(entries), dpus))
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # A lane begins at row k n // L + min(k, n mod L) of a slice of n rows, if it has any.
    lane = np.arange(min(lanes, int(sizes[0])))
    offsets = lane * (sizes[:, None] // lanes) + np.minimum(lane, sizes[:, None] % lanes)
    begins = np.ones(len(entries), bool)
    begins[1:] = entries[1:] != entries[:-1]
    begins[(first[:, None] + offsets)[offsets < sizes[:, None]]] = True
    return np.add.reduceat(begins, first, dtype=np.int64)
