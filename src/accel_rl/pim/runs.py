"""Merge of a log's runs, by owner: the runs of an entry, in few DPUs, become one entry.

The weighted mean is that of `accel_rl.pim.merge`, over the runs of an entry in place of all DPUs.
FP32 sums use a tree of adjacent pairs of the runs of an entry, in the order of the log.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.pim.merge import (
    MERGES,
    add_mean_change,
    check_bound,
    limb_products,
    move_by_sums,
    run_weights,
)
from accel_rl.tabular.owners import Runs
from accel_rl.tabular.program import PassProgram
from accel_rl.types import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RunOrder:
    """Runs of all DPUs, sorted by entry of K tables."""

    place: Array  # [G] int32, place of each sorted run among [D, K * R], G = D * K * R
    entry: Array  # [G] int32, ascending; K * S * A where there is no run
    begin: Array  # [K * S * A] int32, the entry's first run of G
    end: Array  # [K * S * A] int32, after the entry's last run


def order_runs(program: PassProgram, runs: Runs) -> RunOrder:
    """Sort runs by entry; runs of an entry stay in the order of the log."""
    tables, size, total = program.rule.tables, program.size, program.entries
    offset = np.arange(tables, dtype=np.int32)[:, None] * np.int32(size)
    entry = jnp.where(runs.entry[:, None] < size, runs.entry[:, None] + offset, total).reshape(-1)
    place = jnp.argsort(entry, stable=True).astype(jnp.int32)
    entry = entry[place]
    every = jnp.arange(total, dtype=jnp.int32)
    begin, end = (
        jnp.searchsorted(entry, every, side=side).astype(jnp.int32) for side in ("left", "right")
    )
    return RunOrder(place, entry, begin, end)


def merge_runs(
    name: str,
    values: Array,
    order: RunOrder,
    base: Array,
    visits: Array,
    alpha: Array,
    bound: int,
) -> Array:
    """Merge the values of runs into one table.

    Args:
      name: one of `MERGES`, static; "mean" is that of the runs of an entry.
      values: [D, K * R] float32 or int32, the runs' values.
      order: from `order_runs`.
      base: [E], Q0, the last broadcast table.
      visits: uint32 [D, K * R], updates since the last broadcast.
      alpha: float32 [], the step size; used by "damped" only.
      bound: from `weight_bound`, static; below 2**31 for INT32.

    Returns:
      Merged table, [E]; entries without a run keep Q0.
    """
    one_of("merge", name, MERGES)
    real = order.entry < base.shape[0]
    weights = run_weights(name, visits.reshape(-1)[order.place], alpha)
    weights = jnp.where(real, weights, np.uint32(0))
    total = _sums(weights, order)
    start = jnp.zeros_like(base) if name == "mean" else base
    # A total of 0 leaves Q0 for "mean" too: a table without an update of an entry says nothing.
    kept = jnp.where(total > 0, start, base)
    own = start.at[order.entry].get(mode="clip")
    values = values.reshape(-1)[order.place]
    if values.dtype == jnp.float32:
        changes = jnp.where(real, weights.astype(jnp.float32) * (values - own), 0.0)
        return add_mean_change(kept, _tree_sums(changes, order), total)
    check_bound(name, bound)
    products = limb_products(values, own, weights, bound)
    return move_by_sums(kept, [_sums(each, order) for each in products], total, bound)


def _sums(x: Array, order: RunOrder) -> Array:
    """Sum integers of each entry's runs: prefix sums may wrap around, differences are exact."""
    prefix = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.cumsum(x, dtype=x.dtype)])
    return prefix[order.end] - prefix[order.begin]


def _tree_sums(x: Array, order: RunOrder) -> Array:
    """Sum each entry's runs by a tree of adjacent pairs, 0 for an entry without a run."""
    count = x.shape[0]
    rank = jnp.arange(count, dtype=jnp.int32) - order.begin.at[order.entry].get(mode="clip")
    for level in range(max(count - 1, 0).bit_length()):
        step = 1 << level
        other = jnp.pad(x[step:], (0, min(step, count)))
        same = jnp.pad(order.entry[step:], (0, min(step, count)), constant_values=-1) == order.entry
        x = x + jnp.where(same & ((rank & np.int32(2 * step - 1)) == 0), other, 0.0)
    return jnp.where(order.end > order.begin, x.at[order.begin].get(mode="clip"), 0.0)
