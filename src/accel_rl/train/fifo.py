"""First-in first-out buffers of fixed length inside a compiled program; None has length 0."""

import jax
import jax.numpy as jnp

from accel_rl.types import PyTree


def init(item: PyTree, length: int) -> PyTree:
    """Fill a fifo with `length` copies of an item, leaves [length, ...]."""
    if length == 0:
        return None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (length, *jnp.shape(leaf))), item)


def oldest(fifo: PyTree, newest: PyTree) -> PyTree:
    """Return the next item out, which is `newest` for a fifo of length 0."""
    return newest if fifo is None else jax.tree.map(lambda leaf: leaf[0], fifo)


def push(fifo: PyTree, item: PyTree) -> PyTree:
    """Drop the oldest item and append a new one."""
    if fifo is None:
        return None
    return jax.tree.map(
        lambda leaf, new: jnp.concatenate([leaf[1:], jnp.asarray(new)[None]]), fifo, item
    )
