"""AMPER-k: each group includes the priorities nearest to its representative value.

An associative memory finds them by best-match searches. The counted form instead finds the radius
that holds the same number, from counts of weights by key. If a ball covers part of a key, that
fraction of the key's weights is included at random, because many weights may be equal, such as
those of items that were never drawn.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.control_flow import order_after
from accel_rl.replay import blocks
from accel_rl.replay.amper import (
    FORMS,
    Search,
    amper_sampler,
    assign_weights,
    positive,
    rates,
    representatives,
    weights_only,
)
from accel_rl.replay.amper_k_exact import exact_search, matches_per_weight
from accel_rl.replay.blocks import Blocks
from accel_rl.replay.inclusion import power_of_two
from accel_rl.replay.key_counts import KEYS, KeyCounts, at, key_counts, key_of
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.types import Array, ArrayLike
from accel_rl.words import SEEDS, mixed_words, unit_float

MODES = ("counted", "exact")
# Bisection steps: for a radius, which may be a hundredth of a key (2^-8 of its weights) at the
# window's low end (2^-16 of the highest); for how far away balls reach a weight, and do again.
STEPS = 28
_REACH_STEPS, _AGAIN_STEPS = 14, 8


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AmperK:
    """State of AMPER-k; a pytree."""

    blocks: Blocks
    counts: Array  # [65281] int32, weights above 0 by key, and minus their number
    alpha: Array  # float32, exponent of priorities
    csp_ratio: Array  # float32, target size of the candidate set over that of the buffer


def amper_k(mode: str = "counted", *, groups: int = 20, form: str = "auto") -> MakeSampler:
    """Configure AMPER-k: group g includes the N_g weights nearest to V_g.

    N_g = lambda * V_g * C_g, where C_g is the number of weights in the group, so that N_g is
    proportional to the group's share of the probability. In the counted form N_g is not rounded:
    the fraction is included at random.

    Hyper-parameters, `form` and the meaning of `Sample.probabilities` are as for `amper_fr`; lambda
    is csp_ratio over the mean of p^alpha, but at most 1 over the highest, so that no group finds
    more items than it holds: heavy tails make the set smaller than its target. The inclusion
    probability of an item is estimated: in the counted form from how far from it values of its
    group and of the two neighbouring groups may be; in the exact form from the matches of 64
    values in each group.

    Args:
      mode: "counted", radii from counts of weights by key, at a cost that does not depend on the
        number of items; "exact", the N_g nearest items, N_g rounded, of equally near ones the lower
        weights and then the lower slots: what an associative memory finds, by a sort in each call.
        Most of many equal weights, such as those of new items, are then never drawn.
      groups: m, 4 to 256.
      form: "rejection", "match" or "auto".

    Reference: as for `amper_fr`.
    """
    one_of("mode", mode, MODES)
    one_of("form", form, FORMS)
    whole("groups", groups, 4, 256)
    edges = np.arange(groups + 1, dtype=np.float32) / np.float32(groups)

    def search(state: AmperK, span: Span, words: Array) -> Search:
        highest = positive(state.blocks.highest)
        rate = matches_per_weight(state.csp_ratio, state.blocks, span)
        counts = key_counts(state.counts, highest)
        at_edges = jnp.asarray(edges) * highest
        low, high = at_edges[:-1], at_edges[1:]
        # The last group includes the whole key of the highest weight: many weights may share it.
        number = jnp.diff(counts.below(at_edges.at[-1].set(counts.cell(highest)[1])))

        value = representatives(words, groups) * highest
        reach = _radius(counts, value, rate * value * number, highest)
        ties = words[1, :SEEDS]

        def member(weights: Array, slots: Array) -> Array:
            start, end = counts.cell(weights)
            per_width, missed = 1 / (end - start), jnp.ones_like(weights)
            for g in range(groups):
                lower = jnp.clip(value[g] - reach[g], start, end)
                upper = jnp.clip(value[g] + reach[g], start, end)
                missed *= 1 - (upper - lower) * per_width
            chance = unit_float(mixed_words(ties, slots.astype(jnp.uint32))[0])
            return chance < 1 - missed

        def included(weights: Array, slots: Array) -> Array:
            own = jnp.minimum((weights / highest * groups).astype(jnp.int32), groups - 1)
            missed = jnp.ones_like(weights)
            for beside in (-1, 0, 1):
                exists = (own + beside >= 0) & (own + beside < groups)
                group = jnp.clip(own + beside, 0, groups - 1)
                ends = at(low, group), at(high, group)
                found = _mean_cover(counts, weights, rate * at(number, group), ends, beside)
                missed = missed * jnp.where(exists, 1 - found, np.float32(1))
            return 1 - missed

        return Search(member, included)

    def make(ring: Ring, selective: bool) -> Sampler:
        if mode == "exact":
            literal = functools.partial(exact_search, groups)
            return amper_sampler(ring, weights_only(ring), assign_weights, literal, groups, form)

        def init(alpha: ArrayLike = 0.6, csp_ratio: ArrayLike = 0.15) -> AmperK:
            counts = jnp.zeros(KEYS + 1, jnp.int32)
            stored = blocks.init(ring.capacity)
            return AmperK(stored, counts, *rates(alpha, csp_ratio))

        return amper_sampler(ring, init, _assign, search, groups, form)

    return make


def _assign(state: AmperK, slots: Array, weights: Array) -> AmperK:
    stored = state.blocks.weights
    inside = (slots >= 0) & (slots < stored.shape[0])
    old = stored[jnp.where(inside, slots, 0)]
    gone = jnp.where(inside & (old > 0), key_of(old), KEYS)
    come = jnp.where(inside & (weights > 0), key_of(weights), KEYS)
    # What removes or adds no weight counts at KEYS, so that this ends as minus their number: in the
    # same array, because a fusion for a number alone would read `stored` again after its write.
    counts = state.counts.at[gone].add(-1, mode="promise_in_bounds")
    counts = counts.at[come].add(1, mode="promise_in_bounds")
    weights = order_after(weights, counts[0])  # which the read of `stored` has changed
    changed = blocks.assign(state.blocks, slots, weights)
    return dataclasses.replace(state, blocks=changed, counts=counts)


def _radius(counts: KeyCounts, value: Array, number: Array, highest: Array) -> Array:
    """Return the radius of the ball about each value that holds `number` weights."""

    def held(radius: Array) -> Array:
        return counts.below(value + radius) - counts.below(value - radius)

    low = highest * _bisect(lambda part: held(highest * part) < number, value, STEPS)
    step = highest * np.float32(2.0**-STEPS)
    found, more = held(low), held(low + step)
    part = jnp.where(more > found, (number - found) / (more - found), np.float32(1))
    return low + step * jnp.clip(part, 0, 1)


def _mean_cover(
    counts: KeyCounts, weights: Array, rate: Array, ends: tuple[Array, Array], beside: int
) -> Array:
    """Return the fraction of each weight's key that a group's ball covers, on average.

    The ball about V, uniform between the group's ends, holds N = rate * V weights. It includes a
    point if fewer than N lie between the point and its mirror image about V. Of a key of n weights
    it covers min(N / n, 1), and reaches the key from as far away as the middle of that part is
    included. N grows with V: beyond a gap balls may reach the key again, up to the group's end.
    For two clusters of a few keys in a group estimates may be a fourth: balls end inside keys.

    Args:
      counts: of all weights.
      weights: [n].
      rate: N over V, in each weight's group.
      ends: of the group.
      beside: -1 or 1 if the group is below or above a weight's own, else 0.
    """
    start, end = counts.cell(weights)
    first, last = ends
    equals = jnp.maximum(counts.below(end) - counts.below(start), 1)

    def part(value: Array) -> Array:
        return jnp.minimum(rate * value / equals, 1)

    def beyond(edge: Array, other: Array, far: Array, again: bool) -> Array:
        """Return how far from the key, up to far, balls cover it, times the part they cover.

        If `again`, beyond a gap too.
        """
        near = jnp.clip(edge, first, last)
        middle = edge + (other - edge) * part(near) / 2
        below = counts.below(middle)

        def reaches(value: Array) -> Array:
            return jnp.abs(counts.below(2 * value - middle) - below) < rate * value

        def farthest(here: Array, there: Array, steps: int) -> Array:
            way = there - here
            found = _bisect(lambda part: reaches(here + part * way), here, steps)
            return here + (found + np.float32(2.0 ** -(steps + 1))) * way

        value = farthest(near, far, _REACH_STEPS)
        covered = jnp.abs(value - near) * part((value + near) / 2)
        if again:
            since = jnp.maximum(farthest(far, near, _AGAIN_STEPS), value)
            covered += jnp.where(reaches(far), far - since, 0) * part((far + since) / 2)
        return covered

    covered = jnp.maximum(jnp.minimum(end, last) - jnp.maximum(start, first), 0) * part(weights)
    if beside <= 0:
        covered += beyond(start, end, first, again=False)
    if beside >= 0:
        covered += beyond(end, start, last, again=beside == 0)
    return jnp.clip(covered / (last - first), 0, 1)


def _bisect(holds: Callable[[Array], Array], like: Array, steps: int) -> Array:
    """Return the part of 1 up to which a condition holds, rounded down to 2^-steps.

    The carry is the lower bound alone: XLA then makes one pass of each step, several times as fast
    on a CPU as with both bounds.
    """

    def halve(step: Array, part: Array) -> Array:
        longer = part + power_of_two(np.int32(-1) - step)
        return jnp.where(holds(longer), longer, part)

    return jax.lax.fori_loop(np.int32(0), np.int32(steps), halve, jnp.zeros_like(like))
