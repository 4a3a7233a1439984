"""Limits on how far pushes and samples of a table may run ahead of each other."""

import math

from accel_rl.arguments import within
from accel_rl.remote.schema import Column, Limiter, TableSpec


def limiter_around(
    least: int, batch_size: int, samples_per_insert: float | None, slack: float | None
) -> Limiter:
    """Return a limiter as in Reverb, centred on the exact ratio of samples to inserts.

    Args:
      least: items required before sampling.
      batch_size: items of a sample.
      samples_per_insert: samples per inserted item; None: only `least` limits sampling.
      slack: allowed deviation of inserts * samples_per_insert - samples, either way; None: two
        batches, times samples_per_insert if that is above 1.

    Raises:
      ValueError: if a number is out of range, or slack is given without samples_per_insert.
    """
    if samples_per_insert is None:
        if slack is not None:
            raise ValueError("slack is for a table with samples_per_insert")
        return Limiter(min_size=least)
    within("samples_per_insert", samples_per_insert, "(0, inf)")
    slack = 2.0 * batch_size * max(1.0, samples_per_insert) if slack is None else slack
    if not max(batch_size, samples_per_insert) <= slack < math.inf:
        raise ValueError(
            f"slack must be finite and at least a batch, {batch_size}, and samples_per_insert, got "
            f"{slack}"
        )
    # Sampling starts at `least` inserts and 0 samples: that difference is the centre, as if the
    # samples that those inserts allow had been drawn already.
    start = least * samples_per_insert
    return Limiter(least, samples_per_insert, start - slack, start + slack)


def pace_of(spec: TableSpec) -> TableSpec:
    """Return the table that holds the limiter of a sharded table: one byte per pushed item."""
    return TableSpec(
        f"{spec.name}/limiter",
        spec.capacity,
        (Column("item", "u1"),),
        sampler="uniform",
        limiter=spec.limiter,
    )
