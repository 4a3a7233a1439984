"""Proportional prioritised experience replay: P(i) proportional to a power of the priority."""

import dataclasses
import functools
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import native
from accel_rl.arguments import one_of, scalar_within
from accel_rl.replay import row_sums, row_sums_pallas, sum_tree, sum_tree_native, wide_sum
from accel_rl.replay.form_choice import fastest
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span, within
from accel_rl.types import Array, ArrayLike, PyTree

MODULES = {
    "tree": sum_tree,
    "native": sum_tree_native,
    "wide": wide_sum,
    "rows": row_sums,
    "pallas": row_sums_pallas,
}
FORMS = ("auto", *MODULES)
ON_ACCELERATORS = ("wide", "rows", "pallas")


# A ring has at most 2**30 items: even the largest weights have a sum that is finite in float32.
LEAST_WEIGHT, MOST_WEIGHT = np.float32(1e-28), np.float32(1e28)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prioritised:
    """State of proportional prioritisation; a pytree."""

    sums: PyTree  # sum_tree.SumTree, weights of wide_sum, or Blocks of row_sums
    alpha: Array  # float32, >= 0


def prioritised(form: str = "auto") -> MakeSampler:
    """Configure proportional prioritisation, P(i) = p_i^alpha / sum_k p_k^alpha.

    The hyper-parameter is `alpha`, a leaf; 0.6 unless given to `init`.

    Args:
      form: "tree", a sum tree, which is fast on a CPU; "native", the same tree in C, bit-identical;
        "wide", sums computed at each draw, for accelerators; "rows", sums of rows that are kept,
        also for them; "pallas", the same by Pallas kernels, for NVIDIA GPUs; "auto": on a CPU
        "native" if the kernels are available, else "tree", on accelerators the fastest of "wide",
        "rows" and "pallas" there, measured once for a device and a power of two of the capacity.
        All draw from the same distribution; a tree and the others do not draw the same items for
        one key.

    Raises:
      native.KernelsAbsent: when the sampler is made, if `form` is "native" and the kernels are
        missing.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, equation 1.
    """
    one_of("form", form, FORMS)

    def make(ring: Ring, selective: bool) -> Sampler:
        chosen = form
        if form == "auto" and jax.default_backend() == "cpu":
            chosen = "native" if native.why_absent() is None else "tree"
        elif form == "auto":
            makers = {
                each: functools.partial(_sampler, ring, MODULES[each]) for each in ON_ACCELERATORS
            }
            chosen = fastest(makers, ring)
        if chosen == "native":
            native.library()
        return _sampler(ring, MODULES[chosen])

    return make


def power(priorities: Array, alpha: Array) -> Array:
    """Return priorities^alpha, clipped to [1e-28, 1e28]; 0 for priority 0, whatever alpha."""
    positive = priorities > 0
    safe = jnp.where(positive, priorities, np.float32(1))
    # Clip so that sums stay finite and any item with a positive priority can be drawn.
    scaled = jnp.clip(safe**alpha, LEAST_WEIGHT, MOST_WEIGHT)
    return jnp.where(positive, scaled, np.float32(0))


def _sampler(ring: Ring, ops: ModuleType) -> Sampler:
    """Return the sampler over one of `MODULES`, which have the same functions."""

    def init(alpha: ArrayLike = 0.6) -> Prioritised:
        return Prioritised(ops.init(ring.capacity), scalar_within("alpha", alpha, "[0, inf)"))

    def assign(state: Prioritised, slots: Array, weights: Array) -> Prioritised:
        slots = within(slots, ring.capacity)
        return dataclasses.replace(state, sums=ops.assign(state.sums, slots, weights))

    def assign_range(state: Prioritised, first: Array, weights: Array) -> Prioritised:
        sums = ops.assign_range(state.sums, first, weights, ring.capacity)
        return dataclasses.replace(state, sums=sums)

    def draw(state: Prioritised, span: Span, positions: Array, words: Array) -> PyTree:
        slots, probabilities = ops.draw(state.sums, positions, words)
        # If all weights are 0, the slot may be in the padding beyond the capacity.
        return jnp.minimum(slots, np.int32(ring.capacity - 1)), probabilities

    return Sampler(
        init=init,
        scale=lambda state, priorities: power(priorities, state.alpha),
        assign=assign,
        assign_range=assign_range,
        draw=draw,
        mass=lambda state, span: ops.total(state.sums),
        least=lambda state, span: _least(ops.leaves(state.sums), ops.total(state.sums)),
        highest=lambda state: ops.highest(state.sums),
        num_words=ops.NUM_WORDS,
    )


def _least(weights: Array, total: Array) -> Array:
    positive = jnp.where(weights > 0, weights, np.float32(np.inf))
    return jnp.where(total > 0, jnp.min(positive) / total, np.float32(0))
