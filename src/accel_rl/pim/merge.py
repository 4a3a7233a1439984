"""Merge of the DPUs' Q-tables into one, by a weighted mean of their changes.

Q0 is the last broadcast table, q_i the table of DPU i and w_i(s, a) its weight. The merged entry is
Q0 + sum_i w_i (q_i - Q0) / sum_i w_i, or Q0 if all weights are 0.

| merge | w_i | |
| --- | --- | --- |
| visits | updates of (s, a) on DPU i since the last merge | the default |
| mean | 1; the merged entry is the plain mean of the q_i | SwiftRL's, as recalled |
| visited | 1 if DPU i updated (s, a), else 0 | |
| damped | 1 - (1 - alpha)**n_i for n_i updates, in units of 1/32,768 | |

INT32 sums are exact, and quotients round half away from zero. FP32 sums use a fixed pairwise tree
in DPU order, so that the result does not depend on the number of devices; they are multiplied by
the reciprocal of the sum of weights.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.pim import wide
from accel_rl.types import Array

MERGES = ("visits", "mean", "visited", "damped")
MAX_INT32_WEIGHT = 2**31
_DAMPED_ONE = 32_768
_DAMPED_ENTRIES = 256  # more than 255 visits weigh as 255


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


def weight_bound(name: str, num_dpus: int, visits: int) -> int:
    """Return the largest sum of weights, for `visits` updates on all DPUs between two merges."""
    return {
        "visits": visits,
        "mean": num_dpus,
        "visited": num_dpus,
        "damped": num_dpus * _DAMPED_ONE,
    }[name]


def merge_tables(
    name: str, tables: Array, base: Array, visits: Array, alpha: Array, bound: int
) -> Array:
    """Merge the DPUs' tables into one.

    Args:
      name: one of `MERGES`, static.
      tables: [D, E] float32 or int32, the DPUs' tables.
      base: [E], Q0, the last broadcast table.
      visits: uint32 [D, E], updates since the last broadcast.
      alpha: float32 [], the step size; used by "damped" only.
      bound: from `weight_bound`, static; below 2**31 for INT32.

    Returns:
      Merged table, [E].
    """
    one_of("merge", name, MERGES)
    weights = run_weights(name, visits, alpha)
    # The plain mean has no base: subtracting and adding it again would round in FP32.
    start = jnp.zeros_like(base) if name == "mean" else base
    # Summed as integers: float32 counts of visits would round from 2**24 on.
    total = jnp.sum(weights, axis=0, dtype=jnp.uint32)
    if tables.dtype == jnp.float32:
        weighted = pairwise_sum(weights.astype(jnp.float32) * (tables - start))
        return add_mean_change(start, weighted, total)
    check_bound(name, bound)

    def step(sums: list[Array], dpu: tuple[Array, Array]) -> tuple[list[Array], None]:
        products = limb_products(dpu[0], start, dpu[1], bound)
        return [x + y for x, y in zip(sums, products, strict=True)], None

    # One array per limb: XLA's CPU compiler does not vectorise a stacked array.
    zeros = [jnp.zeros_like(start)] * _limbs(bound)[0]
    return move_by_sums(start, jax.lax.scan(step, zeros, (tables, weights))[0], total, bound)


def pairwise_sum(x: Array) -> Array:
    """Sum over axis 0 along a fixed tree of adjacent pairs, padded to a power of two."""
    count = x.shape[0]
    depth = max(count - 1, 0).bit_length()
    x = jnp.pad(x, [(0, 2**depth - count)] + [(0, 0)] * (x.ndim - 1))
    for _ in range(depth):
        x = x[0::2] + x[1::2]
    return x[0]


def damped_unit(alpha: Array) -> Array:
    """Round a step size to units of 1/32,768, uint32."""
    return jnp.round(alpha * np.float32(_DAMPED_ONE)).astype(jnp.uint32)


def damped_weights(alpha: Array) -> Array:
    """Return weights 1 - (1 - alpha)**n for n = 0, ..., 255 visits, uint32 [256].

    Weights are in units of 1/32,768. With a = alpha rounded to this unit, the weight of n visits is
    32,768 - k[n], where k[0] = 32,768 and k[n + 1] = (k[n] * (32,768 - a) + 16,384) >> 15.
    """
    one = np.uint32(_DAMPED_ONE)
    keep = one - damped_unit(alpha)

    def step(k: Array, _: object) -> tuple[Array, Array]:
        return (k * keep + np.uint32(_DAMPED_ONE // 2)) >> np.uint32(15), one - k

    return jax.lax.scan(step, jnp.full_like(keep, one), None, length=_DAMPED_ENTRIES)[1]


def run_weights(name: str, visits: Array, alpha: Array) -> Array:
    """Return the weights, uint32, of tables or runs with so many updates, uint32."""
    if name == "visits":
        return visits
    if name == "mean":
        return jnp.ones_like(visits)
    if name == "visited":
        return (visits > 0).astype(jnp.uint32)
    return damped_weights(alpha)[jnp.minimum(visits, np.uint32(_DAMPED_ENTRIES - 1))]


def check_bound(name: str, bound: int) -> None:
    """Raise ValueError unless weighted INT32 sums of limbs fit 32 bits."""
    if bound >= MAX_INT32_WEIGHT:
        raise ValueError(
            f"INT32 merge {name!r} allows fewer than {MAX_INT32_WEIGHT} weighted updates between "
            f"two merges, got up to {bound}: use a shorter period or, for 'damped', fewer DPUs or "
            "lanes"
        )


def add_mean_change(base: Array, weighted: Array, total: Array) -> Array:
    """Return base + weighted / total in FP32, or base where total, uint32, is 0."""
    # Multiply by the reciprocal: XLA rewrites division by a constant, as in "mean", to the same.
    share = np.float32(1) / jnp.maximum(total, np.uint32(1)).astype(jnp.float32)
    return jnp.where(total > 0, base + weighted * share, base)


def _limbs(bound: int) -> tuple[int, int]:
    """Return number and bits of limbs of which weighted sums over all DPUs fit an int32."""
    # Limbs of one bit sum to at most the bound itself.
    bits = max(31 - bound.bit_length(), 1)
    return -(-32 // bits), bits


def limb_products(table: Array, base: Array, weight: Array, bound: int) -> list[Array]:
    """Return weight * (table - base) of INT32 entries, as int32 products of each limb."""
    limbs, bits = _limbs(bound)
    mask = np.uint32(2**bits - 1)
    negative = table < base
    # A difference of two int32 needs 33 bits. Its magnitude fits uint32, and its sign goes to the
    # weight, whose products are small enough to be signed.
    difference = table.astype(jnp.uint32) - base.astype(jnp.uint32)
    magnitude = jnp.where(negative, ~difference + np.uint32(1), difference)
    signed = jnp.where(negative, ~weight + np.uint32(1), weight)
    parts = [(magnitude >> np.uint32(bits * k)) & mask for k in range(limbs)]
    return [(part * signed).astype(jnp.int32) for part in parts]


def move_by_sums(base: Array, sums: list[Array], total: Array, bound: int) -> Array:
    """Return base + sum / total, the quotient rounded half away from zero, or base if total is 0.

    Args:
      base: int32 [E].
      sums: int32 [E] for each limb, sums of `limb_products`.
      total: uint32 [E], sums of weights.
      bound: as for `limb_products`.
    """
    limbs, bits = _limbs(bound)
    numerator = wide.from_int32(sums[limbs - 1])
    for k in reversed(range(limbs - 1)):
        numerator = wide.add(wide.shift_left(numerator, bits), wide.from_int32(sums[k]))
    step_size = wide.divide_rounded(numerator, jnp.maximum(total, np.uint32(1)))
    return jnp.where(total > 0, base + step_size, base)
