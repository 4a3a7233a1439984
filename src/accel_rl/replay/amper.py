"""AMPER: prioritised replay by associative-memory search instead of a tree walk.

The range of priorities is divided into m groups. At each call every group draws a representative
value V in its part and searches the stored priorities around V. The union of the matches is the
candidate set of priorities (CSP), from which the batch is drawn uniformly.

Only the beginning of the published text was available. The method is reconstructed from what is
known of it; the importance-sampling weights and the dithered search are our own.

Reference: Li, Kazemi, Laguna and Hu, "Associative memory based experience replay for deep
  reinforcement learning", ICCAD 2022, doi:10.1145/3508352.3549387.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import am
from accel_rl.am.lines import draw_from
from accel_rl.arguments import one_of, scalar_within, whole
from accel_rl.control_flow import compiled_apart
from accel_rl.replay import blocks, inclusion
from accel_rl.replay.blocks import Blocks
from accel_rl.replay.inclusion import exponent_of, power_of_two
from accel_rl.replay.members import draw_members
from accel_rl.replay.prioritised import power
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span, within
from accel_rl.types import Array, ArrayLike, PyTree
from accel_rl.words import SEEDS, mix, mixed_words, unit_float

LAWS = {
    "exact": inclusion.ball,
    "prefix": inclusion.block,
    "dithered": inclusion.dithered_block,
}
FORMS = ("auto", "rejection", "match")
KEY_BITS = (16, 32)
LEAST_INCLUDED = np.float32(1e-6)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Amper:
    """State of AMPER-fr; a pytree."""

    blocks: Blocks
    alpha: Array  # float32, exponent of priorities
    csp_ratio: Array  # float32, target size of the candidate set over that of the buffer


class Search(NamedTuple):
    """Queries of one call, and the inclusion probabilities of the sets that they find."""

    member: Callable[[Array, Array], Array]
    """member(weights [...], slots [...]): True for members of the candidate set, bool [...]."""

    included: Callable[[Array, Array], Array]
    """included(weights [n], slots [n]): probabilities that a call includes them, float32 [n]."""


def amper_fr(
    mode: str = "dithered", *, groups: int = 20, key_bits: int = 32, form: str = "auto"
) -> MakeSampler:
    """Configure AMPER-fr: group g includes the weights within lambda' / m * V_g of V_g.

    The hyper-parameters are leaves: `alpha` (0.6) as in prioritised replay, and `csp_ratio` (0.15),
    the target size of the candidate set over that of the buffer. lambda' follows from it, since the
    ratio is about 2 * lambda' * mean / highest of p^alpha. lambda' is at most 1, so heavy tails
    make the set smaller than its target. Weights are moved apart by up to the width of a group (see
    `spread`), or items of equal priority would be in a set together or not at all. Groups reach to
    the highest of them; for "exact", to the highest value whose ball holds that.

    `Sample.probabilities` are estimates: the inclusion probability of the item (see `inclusion`)
    over the size of this call's candidate set, which "match" counts, and "rejection" estimates from
    the fraction of random slots that are in it. This size cancels in importance-sampling weights,
    which are relative.

    If no item is in any set, the batch is drawn uniformly from all items.

    Args:
      mode: "exact", a radius search; "prefix", one ternary query for each group, with don't-care
        bits from the radius; "dithered", the same with one bit more or less at random, so that the
        mean width is right.
      groups: m, 4 to 256.
      key_bits: width of the fixed-point keys that are searched, 16 or 32; inclusion probabilities
        ignore the steps of keys.
      form: "rejection" tries random slots, which is fast on a CPU; "match" searches all keys, for
        accelerators; "auto" chooses by the default backend.
    """
    one_of("mode", mode, LAWS)
    one_of("form", form, FORMS)
    whole("groups", groups, 4, 256)
    if key_bits not in KEY_BITS:
        raise ValueError(f"key_bits must be one of {KEY_BITS}, got {key_bits}")
    dtype, law = am.key_dtype(key_bits), LAWS[mode]
    # On a CPU, fused with the search, it would compute the slots that are tried once more.
    moved = spread if searches_all(form) else compiled_apart(spread, ["groups"])

    def search(state: Amper, span: Span, words: Array) -> Search:
        highest = positive(state.blocks.highest)
        mean = positive(state.blocks.total) / jnp.maximum(span.size, 1).astype(jnp.float32)
        end = np.float32(1 + 1 / groups)  # of the groups' range, over the highest weight
        ratio = jnp.minimum(state.csp_ratio * end * highest / (2 * mean), np.float32(1))
        reach = ratio / np.float32(groups)  # radius over value
        scale = np.float32(1) / end * (1 - reach if mode == "exact" else np.float32(1))
        value = representatives(words, groups)
        width = 2 * reach * value * np.float32(2.0**key_bits)  # in keys
        center = am.encode(value, bits=key_bits)

        def places(weights: Array, slots: Array) -> Array:
            return moved(weights, slots, highest, groups=groups) * scale

        def keys(weights: Array, slots: Array) -> Array:
            return am.encode(places(weights, slots), bits=key_bits)

        def member(weights: Array, slots: Array) -> Array:
            if mode == "exact":
                return am.any_radius(keys(weights, slots), center, (width / 2).astype(dtype))
            if mode == "prefix":
                low_bits = exponent_of(width / 2) + np.int32(1)
            else:
                low_bits = exponent_of(width)
                excess = width / power_of_two(low_bits) - 1
                low_bits += (unit_float(words[1, :groups]) < excess).astype(jnp.int32)
            low_bits = jnp.clip(low_bits, 0, key_bits)
            dont_cares = jax.vmap(lambda bits: am.low_mask(bits, key_bits))(low_bits)
            return am.any_match(keys(weights, slots), center, dont_cares)

        return Search(member, lambda weights, slots: law(places(weights, slots), reach, groups))

    def make(ring: Ring, selective: bool) -> Sampler:
        return amper_sampler(ring, weights_only(ring), assign_weights, search, groups, form)

    return make


def spread(weights: Array, slots: Array, highest: Array, groups: int) -> Array:
    """Return weights over the highest, moved apart by up to the width of a group, 1 / groups.

    Items of one weight would be in a call's candidate set together or not at all, such as all that
    nothing has drawn yet. The offset is a hash of slot and weight, as if keys were written with
    random low bits. Its mean is 0, and it is at most the fraction itself.

    Args:
      weights: [n] float32.
      slots: [n] int32.
      highest: [] float32, the highest weight, above 0.
      groups: m.
    """
    bits = jax.lax.bitcast_convert_type(weights, jnp.uint32)
    word = mix(bits ^ (slots.astype(jnp.uint32) * np.uint32(0x9E3779B1)))
    offset = 2 * unit_float(word) - 1
    fraction = weights / highest
    return fraction + offset * jnp.minimum(fraction, np.float32(1 / groups))


def searches_all(form: str) -> bool:
    """Return whether a form searches all keys, as "auto" does on accelerators."""
    return form == "match" or (form == "auto" and jax.default_backend() != "cpu")


def weights_only(ring: Ring) -> Callable[..., Amper]:
    """Return the `init` of samplers whose searches read nothing but weights."""

    def init(alpha: ArrayLike = 0.6, csp_ratio: ArrayLike = 0.15) -> Amper:
        return Amper(blocks.init(ring.capacity), *rates(alpha, csp_ratio))

    return init


def assign_weights(state: Amper, slots: Array, weights: Array) -> Amper:
    """Set weights at slots without duplicates."""
    return dataclasses.replace(state, blocks=blocks.assign(state.blocks, slots, weights))


def amper_sampler(
    ring: Ring,
    init: Callable[..., PyTree],
    assign: Callable[[PyTree, Array, Array], PyTree],
    search: Callable[[PyTree, Span, Array], Search],
    groups: int,
    form: str,
) -> Sampler:
    """Make an AMPER sampler from a variant's search and assignment of weights.

    Args:
      ring: sizes of the ring.
      init: makes a state with `blocks` and `alpha`.
      assign: sets weights at slots without duplicates.
      search: makes the queries of a call, from random words [2, at least groups].
      groups: m.
      form: "rejection", "match" or "auto".
    """
    pick = _draw_by_match if searches_all(form) else _draw_by_rejection

    def assign_any(state: PyTree, slots: Array, weights: Array) -> PyTree:
        kept = jnp.where(blocks.last_of_each(slots), slots, np.int32(-1))
        return assign(state, within(kept, ring.capacity), weights)

    def assign_range(state: PyTree, first: Array, weights: Array) -> PyTree:
        return assign(state, blocks.around(first, weights.shape[0], ring.capacity), weights)

    def draw(state: PyTree, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        bits = query_words(words, groups)
        seeds = bits.T.reshape(-1)[-SEEDS:]  # of the columns after the groups'
        queries = search(state, span, bits)
        stored = state.blocks.weights
        num = positions.shape[0]
        slots, found = pick(seeds, queries, stored, span, ring.capacity, num)
        weights = stored[jnp.maximum(slots, 0)]
        size = jnp.maximum(span.size, 1).astype(jnp.float32)
        # A drawn item was included, even if rounding makes its probability 0.
        included = jnp.maximum(queries.included(weights, jnp.maximum(slots, 0)), LEAST_INCLUDED)
        # If no item is in any set, the draws are from all items.
        expected = jnp.where(found > 0, included / jnp.maximum(found, 1), 1 / size)
        probabilities = jnp.where((slots >= 0) & (weights > 0), expected, np.float32(0))
        return jnp.maximum(slots, 0), probabilities

    return Sampler(
        init=init,
        scale=lambda state, priorities: power(priorities, state.alpha),
        assign=assign_any,
        assign_range=assign_range,
        draw=draw,
        mass=lambda state, span: state.blocks.total,
        least=None,
        highest=lambda state: state.blocks.highest,
        num_words=SEEDS,
    )


def _draw_by_rejection(
    seeds: Array, queries: Search, stored: Array, span: Span, capacity: int, num: int
) -> tuple[Array, Array]:
    """Return slots [num], -1 if no item has a positive weight, and the set's estimated size."""

    def item(slots: Array) -> Array:
        return stored[slots] > 0

    def member(slots: Array) -> Array:
        return queries.member(stored[slots], slots) & item(slots)

    slots, part = draw_members(seeds, span, capacity, member, num, otherwise=item)
    return slots, part * span.size.astype(jnp.float32)


def _draw_by_match(
    seeds: Array, queries: Search, stored: Array, span: Span, capacity: int, num: int
) -> tuple[Array, Array]:
    """Return slots [num], -1 if no item has a positive weight, and the candidate set's size."""
    items = stored > 0
    lines = am.pack(queries.member(stored, jnp.arange(stored.shape[0], dtype=jnp.int32)) & items)
    members = am.count_packed(lines)
    lines = jnp.where(members > 0, lines, am.pack(items))
    random, _ = mixed_words(seeds, jnp.arange(num, dtype=jnp.uint32))
    return draw_from(random, lines), members.astype(jnp.float32)


def query_words(words: Array, groups: int) -> Array:
    """Return a call's random words, uint32 [2, groups + 2]: two for each group, then seeds.

    Mixed from the given words, because XLA compiles threefry on a CPU to a loop of many small
    operations.
    """
    return jnp.stack(mixed_words(words[:, 0], jnp.arange(groups + 2, dtype=jnp.uint32)))


def representatives(words: Array, groups: int) -> Array:
    """Draw a value uniformly in each group, as a fraction of the highest, float32 [groups]."""
    start = jnp.arange(groups, dtype=jnp.float32)
    return (start + unit_float(words[0, :groups])) / np.float32(groups)


def positive(x: Array) -> Array:
    """Return `x` where it is positive, else 1."""
    return jnp.where(x > 0, x, np.float32(1))


def rates(alpha: ArrayLike, csp_ratio: ArrayLike) -> tuple[Array, Array]:
    """Check the hyper-parameters of AMPER and return them as leaves."""
    return scalar_within("alpha", alpha, "[0, inf)"), scalar_within(
        "csp_ratio", csp_ratio, "(0, 1]"
    )
