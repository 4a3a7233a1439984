"""Uniform draws from the slots of a span that satisfy a condition."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import am
from accel_rl.replay.sampler import Span
from accel_rl.types import Array

PROPOSALS = 10  # tries for each draw in a round: one round suffices if 1 in 7 is a member
ROUNDS = 50  # all rounds suffice if 1 in 200 is


def key_of(words: Array) -> Array:
    """Make a PRNG key from two random words [2] uint32."""
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def in_this_loop(drawn: Array) -> Array:
    """Return int32 0, while draws are missing, as a value that depends on the loop's carry.

    Add it to the inputs of a loop's body. XLA then cannot hoist the body's work out of the loop,
    where every call would execute it.
    """
    return jnp.where(jnp.any(drawn == -1), np.int32(0), np.int32(1))


def draw_members(
    key: Array, span: Span, capacity: int, member: Callable[[Array], Array], num: int
) -> tuple[Array, Array]:
    """Draw independently and uniformly from the slots of a span that are members.

    Random slots are tried first, at a cost that does not depend on the capacity. All slots are
    searched only if draws are still missing.

    Args:
      key: a PRNG key.
      span: slots that hold items.
      capacity: slots of the ring.
      member: maps int32 slots to bool, elementwise.
      num: number of draws.

    Returns:
      Slots int32 [num], all -1 if no slot is a member, and the fraction of the span's slots that
        are members, float32, estimated from the tries unless all slots were searched.
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

    # A loop, not a `cond`: under vmap, a `cond` would search every time.
    offsets, part = jax.lax.while_loop(
        lambda carry: jnp.any(carry[0] == -1), search, (offsets, part)
    )
    return jnp.where(offsets < 0, np.int32(-1), span.slot(offsets, capacity)), part
