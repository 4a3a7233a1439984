"""How many items of a batch each shard gives, drawn by the protocol's generator, and the batch."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from accel_rl.remote.buffers import Sample

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def words(seed: int, first: int, count: int) -> np.ndarray:
    """splitmix(seed + (k + 1) * step) for k from `first` on, uint64 [count]."""
    numbers = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + numbers * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        return z ^ (z >> np.uint64(31))


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What shards, in their order, give of a batch."""

    odds: np.ndarray  # [S] float64, of a draw to be of the shard
    counts: np.ndarray  # [S] int64, items; together the batch
    seeds: list[int]  # [S], of the draws within shards


def drawn(totals: np.ndarray, seed: int, batch: int) -> Drawn:
    """Draw k is of the first shard whose running sum of totals is above u(k) times the whole.

    The seed within shard s is the generator's word number batch + s.

    Args:
      totals: [S] float64, at least 0, not all 0.
      seed: from 0 to 2^64 - 1.
      batch: items.
    """
    running = np.cumsum(totals)
    whole = running[-1]
    found = words(seed, 0, batch + len(totals))
    uniform = (found[:batch] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    # Rounded up to the whole, a position is just below it, and so in a shard that has weight.
    at = np.minimum(uniform * whole, np.nextafter(whole, 0))
    places = np.searchsorted(running, at, side="right")
    counts = np.bincount(places, minlength=len(totals))
    return Drawn(totals / whole, counts, [int(word) for word in found[batch:]])


def joined(parts: Sequence[tuple[Sample, int, float]], size: int, total: float) -> Sample:
    """One sample of shards' parts, of which each item has its probability in the whole.

    Args:
      parts: of each shard what it gave, its first slot in the whole, and the odds of a draw to be
        of it.
      size: items of the whole.
      total: sum of weights of the whole.
    """
    return Sample(
        columns={
            name: np.concatenate([part.columns[name] for part, _, _ in parts])
            for name in parts[0][0].columns
        },
        slots=np.concatenate([part.slots + np.uint32(first) for part, first, _ in parts]),
        generations=np.concatenate([part.generations for part, _, _ in parts]),
        probabilities=np.concatenate([part.probabilities * odds for part, _, odds in parts]),
        size=size,
        total=total,
    )
