"""First-in first-out buffers of fixed length inside a compiled program; None has length 0."""

from typing import Any

import jax
import jax.numpy as jnp


def init(item: Any, length: int) -> Any:
    """Fill a fifo with `length` copies of an item, leaves [length, ...]."""
    if length == 0:
        return None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (length, *jnp.shape(leaf))), item)


def oldest(fifo: Any, newest: Any) -> Any:
    """Return the next item out, which is `newest` for a fifo of length 0."""
    return newest if fifo is None else jax.tree.map(lambda leaf: leaf[0], fifo)


def push(fifo: Any, item: Any) -> Any:
    """Drop the oldest item and append a new one."""
    if fifo is None:
        return None
    return jax.tree.map(
        lambda leaf, new: jnp.concatenate([leaf[1:], jnp.asarray(new)[None]]), fifo, item
    )
