"""Sums made at each draw, against NumPy and against counts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from chi_square import assert_distributed

from accel_rl.replay import wide_sum
from accel_rl.replay.random import positions_of
from accel_rl.words import unit_float

CAPACITIES = (1, 2, 5, 8, 9, 1000, 30_000)


@functools.partial(jax.jit, static_argnames=("calls", "num", "is_stratified"))
def draw_often(weights, key, calls, num, is_stratified=False):
    def step(found, key):
        words = jax.random.bits(key, (2, num))
        positions = positions_of(words[0], is_stratified)
        slots, probabilities = wide_sum.draw(weights, positions, words[1:])
        return found + jnp.sum(probabilities <= 0, dtype=jnp.int32), slots

    return jax.lax.scan(step, jnp.int32(0), jax.random.split(key, calls))


@pytest.mark.parametrize("capacity", quick.only([1, 9, 1000], CAPACITIES))
def test_assignments_and_ranges(capacity):
    rng = np.random.default_rng(capacity)
    assign = jax.jit(wide_sum.assign)
    assign_range = jax.jit(wide_sum.assign_range, static_argnames="capacity")
    state = wide_sum.init(capacity)
    assert capacity <= state.size <= 2 * capacity + 1
    expected = np.zeros(state.size, np.float32)
    for n in sorted({1, min(capacity, 21), capacity}):
        new = rng.exponential(size=n).astype(np.float32)
        first = int(rng.integers(capacity))
        state = assign_range(state, np.int32(first), new, capacity=capacity)
        expected[(first + np.arange(n)) % capacity] = new
        np.testing.assert_array_equal(state, expected)
        slots = rng.integers(0, capacity, 64, dtype=np.int32)
        new = rng.exponential(size=64).astype(np.float32)
        state = assign(state, slots, new)
        for slot, weight in zip(slots, new, strict=True):
            expected[slot] = weight
        np.testing.assert_array_equal(state, expected)
        np.testing.assert_allclose(wide_sum.total(state), expected.sum(dtype=float), rtol=1e-6)
    outside = assign(state, np.int32([-1, state.size, 2**31 - 1]), np.ones(3, np.float32))
    np.testing.assert_array_equal(outside, expected)


@pytest.mark.parametrize("capacity", quick.only([1000], CAPACITIES[1:]))
def test_probabilities_are_exact_and_draws_follow_them(capacity):
    rng = np.random.default_rng(capacity)
    weights = rng.exponential(size=capacity).astype(np.float32)
    weights[rng.random(capacity) < 0.3] = 0
    weights[capacity // 2] = weights.sum() / 3 + 1
    state = jnp.zeros_like(wide_sum.init(capacity)).at[:capacity].set(weights)
    zeros, slots = draw_often(state, jax.random.key(1), 64, 1024)
    assert zeros == 0
    classes = np.arange(capacity) * min(capacity, 100) // capacity
    shares = np.bincount(classes, weights)
    assert_distributed(classes[slots], np.flatnonzero(shares), shares[shares > 0])
    words = jax.random.bits(jax.random.key(2), (2, 1024))
    slots, found = jax.jit(wide_sum.draw)(state, unit_float(words[0]), words[1:])
    np.testing.assert_allclose(found, weights[slots] / weights.sum(dtype=float), rtol=2e-6)


@pytest.mark.parametrize("is_stratified", quick.only([True], [False, True]))
def test_weights_of_zero_are_never_drawn(is_stratified):
    capacity, rng = 1000, np.random.default_rng(7)
    weights = np.exp(3 * rng.normal(size=capacity)).astype(np.float32)
    weights[rng.random(capacity) < 0.4] = 0
    weights[:40] = weights[-40:] = weights[400:500] = 0
    state = wide_sum.init(capacity).at[:capacity].set(weights)
    zeros, slots = draw_often(state, jax.random.key(3), 256, 1024, is_stratified)
    assert zeros == 0
    assert set(np.flatnonzero(np.bincount(np.ravel(slots)))) <= set(np.flatnonzero(weights))


def test_extreme_positions():
    weights = np.zeros(1000, np.float32)
    weights[[17, 600, 901]] = 1e-3, 1.0, 1e3
    state = wide_sum.init(1000).at[:1000].set(weights)
    slots, _ = wide_sum.draw(state, np.float32([0, 1 - 2**-24]), np.uint32([[0, 2**32 - 1]]))
    assert slots.tolist() == [17, 901]


def test_sums_that_rise_at_an_entry_of_0_do_not_meet_it():
    """XLA adds in blocks, so that a cumulated sum may rise by rounding where nothing is added."""
    entries = np.float32([[0, 3, 0, 2, 0]])
    cumulated = np.float32([[0, 3, 3.5, 5, 5.5]])
    for target, slot in ((0, 1), (2.9, 1), (3.2, 3), (4.9, 3), (5.2, 3), (7, 3)):
        found = wide_sum.reach(jnp.asarray(cumulated), jnp.asarray(entries), jnp.float32([target]))
        np.testing.assert_array_equal(found, [slot])
