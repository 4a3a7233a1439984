"""Uniform replay: all items that may be drawn have the same probability."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.control_flow import compiled_apart
from accel_rl.replay.blocks import around
from accel_rl.replay.members import draw_members
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.types import Array, PyTree
from accel_rl.words import SEEDS, high_product

PARTS = 1024  # parts of a span that one float32 position can resolve


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Open:
    """State of uniform replay if some slots of a span cannot be drawn; a pytree."""

    flags: Array  # [capacity] bool
    size: Array  # int32, flags that are set


def uniform() -> MakeSampler:
    """Configure uniform replay, P(i) = 1 / N; priorities are ignored, updates change nothing."""

    def make(ring: Ring, selective: bool) -> Sampler:
        return _selective(ring) if selective else _contiguous(ring)

    return make


def _contiguous(ring: Ring) -> Sampler:
    """Return a stateless sampler for spans in which every slot can be drawn."""

    def draw(state: PyTree, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        part = jnp.maximum((span.size + np.int32(PARTS - 1)) // np.int32(PARTS), 1)
        # Not whole: the last part, if shorter, is drawn in proportion to its size.
        parts = span.size.astype(jnp.float32) / part.astype(jnp.float32)
        start = (positions * parts).astype(jnp.int32) * part
        inside = jnp.clip(span.size - start, 1, part)
        offset = start + high_product(words[0], inside.astype(jnp.uint32)).astype(jnp.int32)
        offset = jnp.clip(offset, 0, jnp.maximum(span.size - 1, 0))
        return span.slot(offset, ring.capacity), jnp.broadcast_to(_each(span.size), offset.shape)

    return Sampler(
        init=lambda: (),
        scale=_scale,
        assign=lambda state, slots, weights: state,
        assign_range=lambda state, first, weights: state,
        # On a CPU the gather of each field would compute the slots again.
        draw=compiled_apart(draw) if jax.default_backend() == "cpu" else draw,
        mass=lambda state, span: span.size.astype(jnp.float32),
        least=lambda state, span: _each(span.size),
        highest=lambda state: jnp.float32(1),
        num_words=1,
        prioritised=False,
    )


def _selective(ring: Ring) -> Sampler:
    """Return a sampler with one flag for each slot, for spans with slots that cannot be drawn."""

    def init() -> Open:
        return Open(jnp.zeros(ring.capacity, bool), jnp.int32(0))

    def assign(state: Open, slots: Array, weights: Array) -> Open:
        inside = jnp.where(slots < 0, np.int32(ring.capacity), slots)
        flags = state.flags.at[inside].set(weights > 0, mode="drop")
        return Open(flags, jnp.sum(flags, dtype=jnp.int32))

    def assign_range(state: Open, first: Array, weights: Array) -> Open:
        slots = around(first, weights.shape[0], ring.capacity)
        closed = jnp.sum(state.flags[slots], dtype=jnp.int32)
        # The second condition always holds. It makes the write depend on the read; otherwise XLA
        # would copy the flags for the read.
        new = (weights > 0) & (closed >= 0)
        flags = state.flags.at[slots].set(new, mode="promise_in_bounds", unique_indices=True)
        return Open(flags, state.size - closed + jnp.sum(new, dtype=jnp.int32))

    def draw(state: Open, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        num = positions.shape[0]
        slots, _ = draw_members(
            words[:, 0], span, ring.capacity, lambda slots: state.flags[slots], num
        )
        probabilities = jnp.where(slots >= 0, _each(state.size), np.float32(0))
        return jnp.maximum(slots, 0), probabilities

    return Sampler(
        init=init,
        scale=_scale,
        assign=assign,
        assign_range=assign_range,
        draw=draw,
        mass=lambda state, span: state.size.astype(jnp.float32),
        least=lambda state, span: _each(state.size),
        highest=lambda state: jnp.float32(1),
        num_words=SEEDS,
        prioritised=False,
    )


def _scale(state: PyTree, priorities: Array) -> Array:
    return (priorities > 0).astype(jnp.float32)


def _each(size: Array) -> Array:
    """Return the probability of each of `size` items, 0 if there is none."""
    return jnp.where(size > 0, 1 / jnp.maximum(size, 1).astype(jnp.float32), np.float32(0))
