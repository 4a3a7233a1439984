"""How far the pushes and samples of a table may run ahead of one another."""

import math

from accel_rl.remote.schema import Column, Limiter, TableSpec


def limiter_around(
    least: int, batch_size: int, samples_per_insert: float | None, slack: float | None
) -> Limiter:
    """Reverb's limiter around the point where as much was sampled as inserts allow."""
    if samples_per_insert is None:
        if slack is not None:
            raise ValueError("slack is for a table with samples_per_insert")
        return Limiter(min_size=least)
    if not 0 < samples_per_insert < math.inf:
        raise ValueError(f"samples_per_insert must be finite and above 0, got {samples_per_insert}")
    slack = 2.0 * batch_size * max(1.0, samples_per_insert) if slack is None else slack
    if not max(batch_size, samples_per_insert) <= slack < math.inf:
        raise ValueError(
            f"slack must be finite and at least a batch, {batch_size}, and samples_per_insert, got "
            f"{slack}"
        )
    # Sampling begins with the least items, as if what those allow had been sampled already.
    start = least * samples_per_insert
    return Limiter(least, samples_per_insert, start - slack, start + slack)


def pace_of(spec: TableSpec) -> TableSpec:
    """The table whose limiter is that of the whole: an item of a byte for each pushed."""
    return TableSpec(
        f"{spec.name}/limiter",
        spec.capacity,
        (Column("item", "u1"),),
        sampler="uniform",
        limiter=spec.limiter,
    )
