"""Draw of a batch's shards, with the protocol's generator, and the batch from their parts."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from accel_rl.remote.buffers import RemoteSample

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def words(seed: int, first: int, count: int) -> np.ndarray:
    """Return splitmix(seed + (k + 1) * step) for k from `first` on, uint64 [count]."""
    numbers = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + numbers * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        return z ^ (z >> np.uint64(31))


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Shares of a batch that shards contribute, in the order of the shards."""

    odds: np.ndarray  # [S] float64, probability of a draw from the shard
    counts: np.ndarray  # [S] int64, items of the shard; the sum is the batch
    seeds: list[int]  # [S], for the draws within shards


def drawn(totals: np.ndarray, seed: int, batch: int) -> Drawn:
    """Draw the shard of each item in a batch, in proportion to the shards' totals.

    Draw k takes the first shard whose running sum of totals exceeds u(k) times the sum of all. The
    seed for draws within shard s is word batch + s of the generator.

    Args:
      totals: sums of weights, [S] float64, at least 0, not all 0.
      seed: from 0 to 2^64 - 1.
      batch: number of items.
    """
    running = np.cumsum(totals)
    whole = running[-1]
    found = words(seed, 0, batch + len(totals))
    uniform = (found[:batch] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    # The product can round up to `whole`, past the last shard. Clipped just below, it always
    # selects a shard with a positive total.
    at = np.minimum(uniform * whole, np.nextafter(whole, 0))
    places = np.searchsorted(running, at, side="right")
    counts = np.bincount(places, minlength=len(totals))
    return Drawn(totals / whole, counts, [int(word) for word in found[batch:]])


def joined(
    parts: Sequence[tuple[RemoteSample, int, float]], size: int, total: float
) -> RemoteSample:
    """Join the samples of shards into one, with slots and probabilities of the whole table.

    Args:
      parts: for each shard its sample, its first slot in the whole table, and the probability of a
        draw from it.
      size: items of the whole table.
      total: sum of weights of the whole table.
    """
    return RemoteSample(
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
