"""Draws from matching keys by trying random slots, at a cost independent of their number."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.am.lines import count_packed, nth, pack
from accel_rl.am.operands import as_count
from accel_rl.arguments import require_array, whole
from accel_rl.types import Array, ArrayLike
from accel_rl.words import high_product, mixed_words, stream_seeds


def draw_by_rejection(
    key: Array,
    member: Callable[..., Array],
    count: ArrayLike,
    num: int,
    *,
    proposals: int = 16,
    rounds: int = 8,
    randomised: bool = False,
) -> tuple[Array, Array, Array]:
    """Draw independently and uniformly from the slots below `count` that `member` accepts.

    A round tries `num * proposals` random slots; the first `num` accepted ones, in order, are the
    draws. Further rounds follow while draws are missing. One round usually suffices if more than
    about 1 in `proposals` slots is accepted. All rounds together fail to fill the draws if fewer
    than about 1 in `proposals * rounds` is.

    Args:
      key: a PRNG key.
      member: maps int32 slots [num * proposals] to bool of the same shape, elementwise. It may be
        called with slot 0 even if `count` is 0.
      count: int32, number of slots to draw from, from 0 (a traced negative one counts as 0).
      num: number of draws, static.
      proposals: slots tried in a round for each draw, static.
      rounds: maximum number of rounds, static.
      randomised: call `member(slots, words)` with an independent uniform uint32 word for each slot,
        to accept it with a probability; static. Draws are then proportional to that probability.

    Returns:
      slots: int32 [num]; -1 where a draw is missing after all rounds: then search all slots.
      accepted, tried: int32, over all proposals of the rounds that ran; their ratio estimates the
        fraction of the slots that is accepted (without bias if `rounds` is 1).
    """
    pool = whole("num", num, 1) * whole("proposals", proposals, 1)
    most = whole("rounds", rounds, 1)
    if pool * most >= 2**31:
        raise ValueError(
            f"num * proposals * rounds must be below 2**31, got {num} * {proposals} * {rounds}"
        )
    slots = as_count("count", count)
    return rejection_from(
        stream_seeds(key), member, slots, num, proposals, rounds, randomised=randomised
    )


def rejection_from(
    seeds: Array,
    member: Callable[..., Array],
    slots: Array,
    num: int,
    proposals: int,
    rounds: int,
    *,
    randomised: bool = False,
) -> tuple[Array, Array, Array]:
    """Draw as `draw_by_rejection` does, from seeds uint32 [SEEDS] of a stream.

    Counters of the stream from 2**31 on are not used.
    """
    pool, most = num * proposals, rounds
    lane = jnp.arange(num, dtype=jnp.int32)

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        _, accepted, tried = state
        return (accepted < num) & (tried < pool * most)

    def attempt(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        drawn, accepted, tried = state
        # Counted on from round to round, so that no word is used twice.
        counter = jnp.arange(pool, dtype=jnp.uint32) + tried.astype(jnp.uint32)
        word, second = mixed_words(seeds, counter)
        tries = high_product(word, slots.astype(jnp.uint32)).astype(jnp.int32)
        hits = member(tries, second) if randomised else member(tries)
        require_array("member's result", hits, np.bool_, (pool,))
        # With nothing to draw from, every try is slot 0, which `member` may accept.
        lines = pack(hits & (slots > 0))
        # Draws that earlier rounds filled have a negative rank, for which `nth` returns -1.
        place = nth(lines, lane - accepted)
        found = tries[jnp.maximum(place, np.int32(0))]
        return (
            jnp.where(place >= 0, found, drawn),
            accepted + count_packed(lines),
            tried + np.int32(pool),
        )

    nothing = jnp.full(num, -1, jnp.int32), jnp.int32(0), jnp.int32(0)
    return jax.lax.while_loop(unfinished, attempt, nothing)
