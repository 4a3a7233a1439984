"""Frame stacks, assembled when they are read, so that each frame is stored once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, PyTree

Offset = Callable[[Array, Array | int], Array]
"""offset(slots, rows): slots of the same environments that many rows later, around the end."""


def stacked_slots(
    ended: Callable[[Array], Array], slots: Array, depth: int, offset: Offset
) -> Array:
    """Return the slots of the newest `depth` frames at each slot, oldest first.

    Frames before the episode's first repeat that first frame, as Gymnasium pads.

    Args:
      ended: maps slots to bool, True if the episode stopped after the step.
      slots: [...] int32.
      depth: frames in a stack.
      offset: see `Offset`.

    Returns:
      int32 [..., depth].
    """
    back = jnp.zeros_like(slots)  # rows back to the oldest frame found so far
    stack = [slots]
    inside = jnp.ones_like(slots, bool)
    for j in range(1, depth):
        inside &= ~ended(offset(slots, -j))
        back += inside.astype(jnp.int32)
        stack.append(offset(slots, -back))
    return jnp.stack(stack[::-1], axis=-1)


def push(stack: PyTree, frame: PyTree, axis: int) -> PyTree:
    """Append one frame to stacks with their depth on `axis`, and drop the oldest frame."""

    def leaf(old: Array, new: Array) -> Array:
        kept = jax.lax.slice_in_dim(old, 1, old.shape[axis], axis=axis)
        return jnp.concatenate([kept, jnp.expand_dims(new, axis)], axis=axis)

    return jax.tree.map(leaf, stack, frame)


def episode_ends(discount: Array, truncated: Array | None) -> Array:
    """Return a mask of the steps after which the episode stopped, bool as `discount`."""
    ended = discount == np.float32(0)
    return ended if truncated is None else ended | truncated
