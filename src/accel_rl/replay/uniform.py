"""Uniform replay: every item that may be drawn is as likely as any other."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.am.words import high_product
from accel_rl.replay.blocks import around
from accel_rl.replay.members import draw_members, key_of
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.types import Array

CHUNKS = 1024  # parts of a span that one float32 position tells apart well


@dataclasses.dataclass(frozen=True)
class Open:
    """State where some slots of a span are closed; a pytree."""

    flags: Array  # [capacity] bool
    size: Array  # int32, how many are set


jax.tree_util.register_dataclass(Open, ["flags", "size"], [])


def uniform() -> MakeSampler:
    """Uniform replay, P(i) = 1 / N; priorities are not kept, and updates change nothing."""

    def make(ring: Ring, selective: bool) -> Sampler:
        return _selective(ring) if selective else _contiguous(ring)

    return make


def _contiguous(ring: Ring) -> Sampler:
    """Every slot of a span can be drawn: there is nothing to remember."""

    def draw(state: Any, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        chunk = jnp.maximum((span.size + np.int32(CHUNKS - 1)) // np.int32(CHUNKS), 1)
        chunks = span.size.astype(jnp.float32) / chunk.astype(jnp.float32)
        start = (positions * chunks).astype(jnp.int32) * chunk
        inside = jnp.clip(span.size - start, 1, chunk)
        offset = start + high_product(words[0], inside.astype(jnp.uint32)).astype(jnp.int32)
        offset = jnp.clip(offset, 0, jnp.maximum(span.size - 1, 0))
        return span.slot(offset, ring.capacity), jnp.broadcast_to(_each(span.size), offset.shape)

    return Sampler(
        init=lambda: (),
        scale=_scale,
        assign=lambda state, slots, weights: state,
        assign_range=lambda state, first, weights: state,
        draw=draw,
        mass=lambda state, span: span.size.astype(jnp.float32),
        least=lambda state, span: _each(span.size),
        highest=lambda state: jnp.float32(1),
        num_words=1,
        prioritised=False,
    )


def _selective(ring: Ring) -> Sampler:
    """Some slots are closed: one flag for each."""

    def init() -> Open:
        return Open(jnp.zeros(ring.capacity, bool), jnp.int32(0))

    def assign(state: Open, slots: Array, weights: Array) -> Open:
        inside = jnp.where(slots < 0, np.int32(ring.capacity), slots)
        flags = state.flags.at[inside].set(weights > 0, mode="drop")
        return Open(flags, jnp.sum(flags, dtype=jnp.int32))

    def assign_range(state: Open, first: Array, weights: Array) -> Open:
        slots = around(first, weights.shape[0], ring.capacity)
        closed = jnp.sum(state.flags[slots], dtype=jnp.int32)
        # The second condition always holds: what was read goes into what is written, or XLA would
        # copy the flags for the reading.
        new = (weights > 0) & (closed >= 0)
        flags = state.flags.at[slots].set(new, mode="promise_in_bounds", unique_indices=True)
        return Open(flags, state.size - closed + jnp.sum(new, dtype=jnp.int32))

    def draw(state: Open, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        key, num = key_of(words.reshape(-1)[:2]), positions.shape[0]
        slots, _ = draw_members(key, span, ring.capacity, lambda slots: state.flags[slots], num)
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
        num_words=2,
        prioritised=False,
    )


def _scale(state: Any, priorities: Array) -> Array:
    return (priorities > 0).astype(jnp.float32)


def _each(size: Array) -> Array:
    """The probability of each of `size` items, 0 if there is none."""
    return jnp.where(size > 0, 1 / jnp.maximum(size, 1).astype(jnp.float32), np.float32(0))
