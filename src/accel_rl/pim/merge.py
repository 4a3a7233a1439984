"""Merging the DPUs' Q-tables into one: a weighted mean of what each DPU learned.

With Q0 the table broadcast last, q_i the table of DPU i and w_i(s, a) its weight, the merged entry
is Q0 + sum_i w_i (q_i - Q0) / sum_i w_i, and Q0 where all weights are 0.

| merge | w_i | |
| --- | --- | --- |
| visits | updates of (s, a) on DPU i since the last merge | the default |
| mean | 1, and the entry is the plain mean of the q_i | SwiftRL's, as remembered |
| visited | 1 where DPU i updated (s, a), else 0 | |
| damped | 1 - (1 - alpha)**n_i, in 1/32,768 | |

INT32 sums are exact and quotients round half away from zero. FP32 sums run through one pairwise
tree in DPU order, so that the number of devices does not change the result, and are multiplied by
the reciprocal of the sum of weights.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.pim import wide
from accel_rl.types import Array

# What `Schedule.merge` may be.
MERGES = ("visits", "mean", "visited", "damped")
MAX_INT32_WEIGHT = 2**30
_DAMPED_ONE = 32_768
_DAMPED_ENTRIES = 256  # beyond, a DPU's weight stays that of 255 visits


def check_merge(name: str) -> str:
    """The name itself.

    Raises:
      ValueError: if there is no such merge.
    """
    if name not in MERGES:
        raise ValueError(f"merge must be one of {', '.join(MERGES)}, got {name!r}")
    return name


def weight_bound(name: str, num_dpus: int, visits: int) -> int:
    """The largest possible sum of weights, for `visits` updates on all DPUs between two merges."""
    return {
        "visits": visits,
        "mean": num_dpus,
        "visited": num_dpus,
        "damped": num_dpus * _DAMPED_ONE,
    }[name]


def merge_tables(
    name: str, tables: Array, base: Array, visits: Array, alpha: Array, bound: int
) -> Array:
    """The merged table.

    Args:
      name: one of `MERGES`, static.
      tables: [D, E] float32 or int32, the DPUs' tables.
      base: [E], Q0, the table broadcast last.
      visits: uint32 [D, E], updates since then.
      alpha: float32 [], the step size; used by "damped" only.
      bound: from `weight_bound`, static; below 2**30 for INT32.

    Returns:
      [E].

    Raises:
      ValueError: if the name is unknown, or the bound too large for INT32.
    """
    check_merge(name)
    weights = _weights(name, visits, alpha)
    start = jnp.zeros_like(base) if name == "mean" else base
    if tables.dtype == jnp.float32:
        return _merge_fp32(tables, start, weights)
    if bound >= MAX_INT32_WEIGHT:
        raise ValueError(
            f"INT32 merge {name!r} allows fewer than {MAX_INT32_WEIGHT} weighted updates between "
            f"two merges, got up to {bound}: use a shorter period"
        )
    return _merge_int32(tables, start, weights, bound)


def pairwise_sum(x: Array) -> Array:
    """Sum over axis 0 through one fixed tree of adjacent pairs, padded to a power of two."""
    count = x.shape[0]
    depth = max(count - 1, 0).bit_length()
    x = jnp.pad(x, [(0, 2**depth - count)] + [(0, 0)] * (x.ndim - 1))
    for _ in range(depth):
        x = x[0::2] + x[1::2]
    return x[0]


def damped_weights(alpha: Array) -> Array:
    """uint32 [256]: 1 - (1 - alpha)**n for n = 0, ..., 255 visits, in 1/32,768.

    By the integer recurrence k[0] = 32,768, k[n + 1] = (k[n] * (32,768 - a) + 16,384) >> 15, with
    a = alpha in 1/32,768 rounded; the weight of n visits is 32,768 - k[n].
    """
    one = np.uint32(_DAMPED_ONE)
    keep = one - jnp.round(alpha * np.float32(_DAMPED_ONE)).astype(jnp.uint32)

    def step(k: Array, _: Any) -> tuple[Array, Array]:
        return (k * keep + np.uint32(_DAMPED_ONE // 2)) >> np.uint32(15), one - k

    return jax.lax.scan(step, jnp.full_like(keep, one), None, length=_DAMPED_ENTRIES)[1]


def _weights(name: str, visits: Array, alpha: Array) -> Array:
    if name == "visits":
        return visits
    if name == "mean":
        return jnp.ones_like(visits)
    if name == "visited":
        return (visits > 0).astype(jnp.uint32)
    return damped_weights(alpha)[jnp.minimum(visits, np.uint32(_DAMPED_ENTRIES - 1))]


def _merge_fp32(tables: Array, base: Array, weights: Array) -> Array:
    total = jnp.sum(weights, axis=0, dtype=jnp.uint32)
    weighted = pairwise_sum(weights.astype(jnp.float32) * (tables - base))
    # Times the reciprocal: XLA makes that of a quotient whose divisor is constant, as in "mean".
    share = np.float32(1) / jnp.maximum(total, np.uint32(1)).astype(jnp.float32)
    return jnp.where(total > 0, base + weighted * share, base)


def _merge_int32(tables: Array, base: Array, weights: Array, bound: int) -> Array:
    # The magnitude of a difference is cut into limbs so short that a limb's weighted sum over all
    # DPUs fits an int32.
    bits = 31 - bound.bit_length()
    limbs = -(-32 // bits)
    mask = np.uint32(2**bits - 1)

    def step(sums: list[Array], dpu: tuple[Array, Array]) -> tuple[list[Array], None]:
        table, weight = dpu
        negative = table < base
        difference = table.astype(jnp.uint32) - base.astype(jnp.uint32)
        magnitude = jnp.where(negative, ~difference + np.uint32(1), difference)
        signed = jnp.where(negative, ~weight + np.uint32(1), weight)
        parts = [(magnitude >> np.uint32(bits * k)) & mask for k in range(limbs)]
        products = [(part * signed).astype(jnp.int32) for part in parts]
        return [x + y for x, y in zip(sums, products, strict=True)], None

    # A limb each, not one stacked array, which XLA's CPU compiler does not vectorise.
    zeros = [jnp.zeros_like(base)] * limbs
    sums, _ = jax.lax.scan(step, zeros, (tables, weights))
    total = jnp.sum(weights, axis=0, dtype=jnp.uint32)
    numerator = wide.from_int32(sums[limbs - 1])
    for k in reversed(range(limbs - 1)):
        numerator = wide.add(wide.shift_left(numerator, bits), wide.from_int32(sums[k]))
    step_size = wide.divide_rounded(numerator, jnp.maximum(total, np.uint32(1)))
    return jnp.where(total > 0, base + step_size, base)
