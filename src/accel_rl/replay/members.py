"""Uniform draws from the slots of a span that satisfy a condition."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import am
from accel_rl.am.lines import draw_from
from accel_rl.am.rejection import rejection_from
from accel_rl.replay.sampler import Span
from accel_rl.types import Array
from accel_rl.words import mixed_words

PROPOSALS = 10  # tries for each draw in a round: one round suffices if 1 in 7 is a member
ROUNDS = 50  # all rounds suffice if 1 in 200 is


def in_this_loop(drawn: Array) -> Array:
    """Return int32 0, while draws are missing, as a value that depends on the loop's carry.

    Add it to the inputs of a loop's body. XLA then cannot hoist the body's work out of the loop,
    where every call would execute it.
    """
    return jnp.where(jnp.any(drawn == -1), np.int32(0), np.int32(1))


def draw_members(
    seeds: Array,
    span: Span,
    capacity: int,
    member: Callable[[Array], Array],
    num: int,
    otherwise: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Draw independently and uniformly from the slots of a span that are members.

    Random slots are tried first, at a cost that does not depend on the capacity. All slots are
    searched only if draws are still missing.

    Args:
      seeds: random words, uint32 [SEEDS].
      span: slots that hold items.
      capacity: slots of the ring.
      member: maps int32 slots to bool, elementwise.
      num: number of draws.
      otherwise: maps slots to bool likewise; if no slot is a member, those that satisfy it are
        drawn from.

    Returns:
      Slots int32 [num], all -1 if there is none to draw from, and the fraction of the span's slots
        that are members, float32, estimated from the tries unless all slots were searched: 0 if and
        only if none is.
    """

    def within(offsets: Array) -> Array:
        return member(span.slot(offsets, capacity))

    offsets, accepted, tried = rejection_from(seeds, within, span.size, num, PROPOSALS, ROUNDS)
    part = accepted.astype(jnp.float32) / jnp.maximum(tried, 1).astype(jnp.float32)

    def search(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        drawn, _ = carry
        here = in_this_loop(drawn)
        every = jnp.arange(capacity, dtype=jnp.int32) + here
        lines = am.pack(within(every) & (every < span.size))
        members = am.count_packed(lines)
        if otherwise is not None:
            others = otherwise(span.slot(every, capacity)) & (every < span.size)
            lines = jnp.where(members > 0, lines, am.pack(others))
        counter = jnp.arange(num, dtype=jnp.uint32) + np.uint32(2**31) + here.astype(jnp.uint32)
        found = draw_from(mixed_words(seeds, counter)[0], lines)
        size = jnp.maximum(span.size, 1).astype(jnp.float32)
        part = members.astype(jnp.float32) / size
        return jnp.where(found < 0, np.int32(-2), found), part

    # A loop, not a `cond`: under vmap, a `cond` would search every time.
    offsets, part = jax.lax.while_loop(
        lambda carry: jnp.any(carry[0] == -1), search, (offsets, part)
    )
    return jnp.where(offsets < 0, np.int32(-1), span.slot(offsets, capacity)), part
