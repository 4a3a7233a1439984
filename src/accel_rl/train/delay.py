"""Queues of fixed length inside a compiled program: what goes in comes out some pushes later."""

from typing import Any

import jax
import jax.numpy as jnp


def start(item: Any, length: int) -> Any:
    """A queue that holds `length` times the item, leaves [length, ...]; None if length is 0."""
    if length == 0:
        return None
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (length, *jnp.shape(leaf))), item)


def oldest(queue: Any, newest: Any) -> Any:
    """What comes out next; `newest` where the queue has no length."""
    return newest if queue is None else jax.tree.map(lambda leaf: leaf[0], queue)


def push(queue: Any, item: Any) -> Any:
    """The queue without its oldest item and with a new one."""
    if queue is None:
        return None
    return jax.tree.map(
        lambda leaf, new: jnp.concatenate([leaf[1:], jnp.asarray(new)[None]]), queue, item
    )
