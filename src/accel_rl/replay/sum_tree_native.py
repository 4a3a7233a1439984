"""Sum tree in C for CPUs, through XLA's FFI: state, signatures and bits are those of `sum_tree`."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import native
from accel_rl.arguments import require_array
from accel_rl.replay.sum_tree import NUM_WORDS, SumTree, highest, init, leaves, total
from accel_rl.types import Array

__all__ = [
    "NUM_WORDS",
    "assign",
    "assign_range",
    "draw",
    "highest",
    "init",
    "leaves",
    "total",
]


def assign(tree: SumTree, slots: Array, weights: Array) -> SumTree:
    """Set leaves [n]; see `sum_tree.assign`."""
    require_array("weights", weights, np.float32, (jnp.size(weights),))
    require_array("slots", slots, np.int32, weights.shape)
    return _assign("accel_rl_sum_tree_assign", tree, slots, weights)


def assign_range(tree: SumTree, first: Array, weights: Array, capacity: int) -> SumTree:
    """Set n consecutive leaves, around the end of the capacity; see `sum_tree.assign_range`."""
    require_array("weights", weights, np.float32, (jnp.size(weights),))
    require_array("first", first, np.int32, ())
    return _assign("accel_rl_sum_tree_assign_range", tree, first, weights, capacity=capacity)


def draw(tree: SumTree, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return slots [n] and their probabilities; see `sum_tree.draw`."""
    n = jnp.size(positions)
    require_array("positions", positions, np.float32, (n,))
    require_array("words", words, np.uint32, (2, n))
    call = jax.ffi.ffi_call(
        native.target("accel_rl_sum_tree_draw"),
        [jax.ShapeDtypeStruct((n,), jnp.int32), jax.ShapeDtypeStruct((n,), jnp.float32)],
        vmap_method="expand_dims",  # a tree shared by draws is not copied
    )
    slots, probabilities = call(tree.leaves, tree.heap, tree.total, positions, words)
    return slots, probabilities


def _assign(symbol: str, tree: SumTree, *operands: Array, **attributes: int) -> SumTree:
    state = jax.tree.leaves(tree)
    call = jax.ffi.ffi_call(
        native.target(symbol),
        [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in state],
        vmap_method="broadcast_all",
        input_output_aliases={k: k for k in range(len(state))},
    )
    return SumTree(*call(*state, *operands, **attributes))
