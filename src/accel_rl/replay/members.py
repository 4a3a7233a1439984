"""Uniform draws from the slots of a span that satisfy a condition."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import am
from accel_rl.replay.sampler import Span
from accel_rl.types import Array

PROPOSALS = 10  # a round's tries for each draw: one round is enough where 1 in 7 is a member
ROUNDS = 50  # and all are where 1 in 200 is


def key_of(words: Array) -> Array:
    """A random key made of two random words [2] uint32."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def in_this_loop(drawn: Array) -> Array:
    """0, int32, to add to what a loop's body starts from while draws are missing.

    What depends on the carry XLA cannot move before the loop, that is, to every call.
    """
    return jnp.where(jnp.any(drawn == -1), np.int32(0), np.int32(1))


def draw_members(
    key: Array, span: Span, capacity: int, member: Callable[[Array], Array], num: int
) -> tuple[Array, Array]:
    """Independent uniform draws from the slots of the span that are members.

    Random slots are tried first, which does not depend on the capacity. Only where that leaves
    draws missing is every slot looked at.

    Args:
      key: a random key.
      span: where items are.
      capacity: slots of the ring.
      member: int32 slots to bool, elementwise.
      num: draws.

    Returns:
      Slots int32 [num], all -1 where no slot is a member, and what part of the span's slots are
      members, float32, as estimated from the tries.
    """

    def within(offsets: Array) -> Array:
        return member(span.slot(offsets, capacity))

    offsets, accepted, tried = am.draw_by_rejection(
        key, within, span.size, num, proposals=PROPOSALS, rounds=ROUNDS
    )
    part = accepted.astype(jnp.float32) / jnp.maximum(tried, 1).astype(jnp.float32)

    def search(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        drawn, _ = carry
        here = in_this_loop(drawn)
        every = jnp.arange(capacity, dtype=jnp.int32) + here
        lines = am.pack(within(every) & (every < span.size))
        found = am.draw(jax.random.fold_in(key, 1 + here), lines, num)
        size = jnp.maximum(span.size, 1).astype(jnp.float32)
        part = am.count_packed(lines).astype(jnp.float32) / size
        return jnp.where(found < 0, np.int32(-2), found), part

    # A loop and not a `cond`, which under vmap would search every time.
    offsets, part = jax.lax.while_loop(
        lambda carry: jnp.any(carry[0] == -1), search, (offsets, part)
    )
    return jnp.where(offsets < 0, np.int32(-1), span.slot(offsets, capacity)), part
