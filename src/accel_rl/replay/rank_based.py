"""Rank-based prioritised replay: sampling by the rank of an item's priority.

Ranks are those of the last sort; once enough priorities have changed, slots are sorted again. In
between, an item has the rank of its slot, and an item in a slot that was not ranked cannot be drawn
until the next sort.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import scalar_within, within
from accel_rl.control_flow import cond_under_vmap, write_nothing
from accel_rl.replay import blocks
from accel_rl.replay.blocks import Blocks
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.types import Array, ArrayLike, PyTree
from accel_rl.words import SEEDS, high_product, mixed_words, unit_float

PER_OCTAVE = 16
Redraw = tuple[Array, Array, Array, Array]
ROUNDS = 8  # attempts to redraw items whose priority became 0 since the sort


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class RankBased:
    """State of rank-based prioritisation; a pytree."""

    blocks: Blocks  # priorities
    order: Array  # [capacity] int32, slots by descending priority at the last sort
    ranked: Array  # int32, slots that then had a priority above 0
    changed: Array  # int32, priorities changed since the last sort
    alpha: Array  # float32, exponent of ranks


def rank_based(sort_after: float = 0.25) -> MakeSampler:
    """Configure rank-based prioritisation, P(i) proportional to rank(i)^-alpha.

    Rank 1 is the highest priority. From rank 17 on, ranks within a 16th of an octave (a factor of
    two) share the probability of their middle: within 2.2 % times alpha of their own.
    `Sample.probabilities` are the actual sampling probabilities, up to one common factor if items
    whose priority became 0 since the sort must be redrawn. The hyper-parameter is `alpha` (0.7).

    Args:
      sort_after: fraction of the ranked items that must have changed before the next sort, above 0.
        A sort takes about as long as a thousand samples.

    Reference: Schaul et al., "Prioritized experience replay", ICLR 2016, section 3.3 and appendix
      B.2.1.
    """
    within("sort_after", sort_after, "(0, inf)")

    def make(ring: Ring, selective: bool) -> Sampler:
        return _sampler(ring, float(sort_after))

    return make


def _sampler(ring: Ring, sort_after: float) -> Sampler:
    edges = rank_edges(ring.capacity)

    def init(alpha: ArrayLike = 0.7) -> RankBased:
        return RankBased(
            blocks.init(ring.capacity),
            jnp.arange(ring.capacity, dtype=jnp.int32),
            jnp.int32(0),
            jnp.int32(0),
            scalar_within("alpha", alpha, "[0, inf)"),
        )

    def keep(state: RankBased, changed: Blocks, number: Array) -> RankBased:
        number = state.changed + number

        def sort(_: PyTree, weights: Array) -> tuple[Array, Array, Array]:
            stored = weights[: ring.capacity]
            order = jnp.argsort(stored, descending=True, stable=False).astype(jnp.int32)
            return order, jnp.sum(stored > 0, dtype=jnp.int32), jnp.int32(0)

        due = number.astype(jnp.float32) > sort_after * state.ranked.astype(jnp.float32)
        unsorted = state.order, state.ranked, number
        order, ranked, number = cond_under_vmap(due, sort, unsorted, changed.weights)
        weights = write_nothing(changed.weights, number)
        changed = dataclasses.replace(changed, weights=weights)
        return RankBased(changed, order, ranked, number, state.alpha)

    def assign(state: RankBased, slots: Array, weights: Array) -> RankBased:
        inside = (slots >= 0) & (slots < ring.capacity)
        kept = jnp.where(inside & blocks.last_of_each(slots), slots, np.int32(-1))
        number = jnp.sum(inside, dtype=jnp.int32)
        return keep(state, blocks.assign(state.blocks, kept, weights), number)

    def assign_range(state: RankBased, first: Array, weights: Array) -> RankBased:
        n = weights.shape[0]
        slots = blocks.around(first, n, ring.capacity)
        return keep(state, blocks.assign(state.blocks, slots, weights), jnp.int32(n))

    def law(state: RankBased) -> tuple[Array, Array]:
        """Return the sizes of runs of equiprobable ranks, and their unnormalised probabilities."""
        ends = jnp.minimum(jnp.asarray(edges), state.ranked)
        middle = ((edges[1:] + edges[:-1] + 1) / 2).astype(np.float32)
        return jnp.diff(ends), jnp.asarray(middle) ** -state.alpha

    def draw(state: RankBased, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        sizes, density = law(state)
        cumulated = jnp.cumsum(sizes.astype(jnp.float32) * density)
        whole = cumulated[-1]

        def at(positions: Array, words: Array) -> tuple[Array, Array]:
            # A position below 1 times the whole may round to the whole, which no run contains.
            below = jnp.nextafter(whole, jnp.float32(0))
            target = jnp.minimum(positions * whole, below)
            run = jnp.sum(cumulated <= target[:, None], axis=1, dtype=jnp.int32)
            run = jnp.minimum(run, len(edges) - 2)
            inside = jnp.maximum(sizes[run], 1).astype(jnp.uint32)
            # The high word of the product maps 32 random bits to [0, inside).
            rank = jnp.asarray(edges)[run] + high_product(words, inside).astype(jnp.int32)
            slots = state.order[jnp.minimum(rank, ring.capacity - 1)]
            return slots, jnp.where(whole > 0, density[run] / whole, np.float32(0))

        slots, probabilities = at(positions, words[0])
        alive = state.blocks.weights[slots] > 0

        def again(carry: Redraw) -> Redraw:
            slots, probabilities, alive, tries = carry
            # Derived from the given words, so that a draw depends on nothing else.
            number = slots.shape[0]
            counter = jnp.arange(number, dtype=jnp.uint32)
            counter += (tries * np.int32(number)).astype(jnp.uint32)
            first, second = mixed_words(words[:, 0], counter)
            new, chance = at(unit_float(first), second)
            slots = jnp.where(alive, slots, new)
            probabilities = jnp.where(alive, probabilities, chance)
            return slots, probabilities, state.blocks.weights[slots] > 0, tries + np.int32(1)

        def missing(carry: Redraw) -> Array:
            return ~carry[2].all() & (carry[3] < ROUNDS)

        carry = slots, probabilities, alive, jnp.int32(0)
        slots, probabilities, alive, _ = jax.lax.while_loop(missing, again, carry)
        return slots, jnp.where(alive, probabilities, np.float32(0))

    def least(state: RankBased, span: Span) -> Array:
        sizes, density = law(state)
        whole = jnp.sum(sizes.astype(jnp.float32) * density)
        lowest = jnp.min(jnp.where(sizes > 0, density, np.float32(np.inf)))
        return jnp.where(whole > 0, lowest / whole, np.float32(0))

    return Sampler(
        init=init,
        scale=lambda state, priorities: priorities,
        assign=assign,
        assign_range=assign_range,
        draw=draw,
        mass=lambda state, span: state.ranked.astype(jnp.float32),
        least=least,
        highest=lambda state: state.blocks.highest,
        num_words=SEEDS,
    )


def rank_edges(capacity: int) -> np.ndarray:
    """Return the starts of runs of equiprobable ranks, from 0, and the end; int32, ascending."""
    octaves = int(capacity - 1).bit_length() + 1
    edges = np.round(2.0 ** (np.arange(octaves * PER_OCTAVE + 1) / PER_OCTAVE)).astype(np.int64)
    edges = np.unique(np.concatenate([np.arange(PER_OCTAVE + 1), edges]))
    return np.append(edges[edges < capacity], capacity).astype(np.int32)
