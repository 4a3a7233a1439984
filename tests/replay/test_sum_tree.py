"""The sum tree against NumPy's sums in float64, and its draws against counts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from chi_square import assert_distributed

from accel_rl.replay import sum_tree
from accel_rl.replay.random import positions_of
from accel_rl.words import unit_float

CAPACITIES = (1, 5, 8, 9, 1000, 300_000)
assign = jax.jit(sum_tree.assign)
assign_range = jax.jit(sum_tree.assign_range, static_argnames="capacity")


@functools.partial(jax.jit, static_argnames=("calls", "num", "is_stratified"))
def draw_often(tree, key, calls, num, is_stratified=False):
    """Draws [calls, num]: slots, and how often a slot was of weight 0."""

    def step(found, key):
        words = jax.random.bits(key, (3, num))
        positions = positions_of(words[0], is_stratified)
        slots, probabilities = sum_tree.draw(tree, positions, words[1:])
        return found + jnp.sum(probabilities <= 0, dtype=jnp.int32), slots

    return jax.lax.scan(step, jnp.int32(0), jax.random.split(key, calls))


def heavy_tailed(rng, size):
    """Nine orders of magnitude."""
    return np.exp(3 * rng.normal(size=size)).astype(np.float32)


def assert_sums(tree, weights, rtol=1e-6):
    """Leaves are the weights, and every sum and every peak is that of the leaves below."""
    leaves = np.zeros(tree.leaves.size)
    leaves[: weights.size] = weights
    np.testing.assert_array_equal(tree.leaves, leaves.astype(np.float32))
    heap_sums, heap_peaks = np.asarray(tree.heap).reshape(-1, 2).T
    half = heap_sums.size // 2
    sums, peaks = leaves.reshape(half, -1).sum(1), leaves.reshape(half, -1).max(1)
    while True:
        width = sums.size
        np.testing.assert_allclose(heap_sums[width : 2 * width], sums, rtol=rtol)
        np.testing.assert_array_equal(heap_peaks[width : 2 * width], peaks.astype(np.float32))
        if width == 1:
            break
        sums, peaks = sums.reshape(-1, 2).sum(1), peaks.reshape(-1, 2).max(1)
    assert tree.total == heap_sums[1]
    assert tree.highest == heap_peaks[1]
    assert np.min(heap_sums) >= 0
    # Parents are sums of their children to the bit: nothing can drift.
    children = heap_sums[2::2][: half - 1] + heap_sums[3::2][: half - 1]
    np.testing.assert_array_equal(heap_sums[1:half], children)


@pytest.mark.parametrize("capacity", quick.only([1, 9], CAPACITIES))
def test_assignments_and_ranges(capacity):
    rng = np.random.default_rng(capacity)
    weights, tree = np.zeros(capacity, np.float32), sum_tree.init(capacity)
    assert_sums(tree, weights)
    for _ in range(5):
        slots = rng.integers(0, capacity, 32, dtype=np.int32)
        new = heavy_tailed(rng, 32)
        tree = assign(tree, slots, new)
        for slot, weight in zip(slots, new, strict=True):  # the last of several stays
            weights[slot] = weight
        assert_sums(tree, weights)
    for n in sorted({1, min(capacity, 3), min(capacity, 21), capacity // 2 + 1, capacity}):
        for first in {0, capacity // 3, max(capacity - 2, 0), capacity - 1}:
            new = heavy_tailed(rng, n) * (rng.random(n) < 0.8)
            where = (first + np.arange(n, dtype=np.int32)) % np.int32(capacity)
            single = assign(tree, where, new) if n < 1000 else None
            tree = assign_range(tree, np.int32(first), new, capacity=capacity)
            weights[where] = new
            assert_sums(tree, weights)
            if single is not None:
                jax.tree.map(np.testing.assert_array_equal, tree, single)


@pytest.mark.parametrize("n", quick.only([2, 27], [2, 10, 26, 27]))
def test_every_start_of_a_range(n):
    """Rows that a range meets only in part, at its ends and at the ring's."""
    capacity, new = 27, np.arange(1, n + 1, dtype=np.float32)

    @jax.jit
    def ranges(firsts):
        full = sum_tree.assign_range(
            sum_tree.init(capacity), jnp.int32(0), jnp.ones(capacity), capacity
        )
        return jax.vmap(lambda first: sum_tree.assign_range(full, first, new, capacity))(firsts)

    trees = ranges(np.arange(capacity, dtype=np.int32))
    for first in range(capacity):
        weights = np.ones(capacity, np.float32)
        weights[(first + np.arange(n)) % capacity] = new
        assert_sums(jax.tree.map(lambda x, first=first: x[first], trees), weights)


def test_slots_outside_are_left_out():
    tree = assign(sum_tree.init(16), np.int32([3, 16, -1, 2**31 - 1]), np.float32([2, 7, 8, 9]))
    assert_sums(tree, np.float32([0, 0, 0, 2]))


@pytest.mark.parametrize("capacity", quick.only([1000], [1000, 100_000]))
def test_sums_do_not_drift(capacity):
    """100 000 updates of 8 heavy-tailed weights each, many of them to nothing."""
    key, times = jax.random.key(capacity), 100_000

    @functools.partial(jax.jit, donate_argnums=0)
    def run(tree):
        def step(carry, key):
            tree, least = carry
            a, b = jax.random.bits(key, (2, 8))
            slots = (a % np.uint32(capacity)).astype(jnp.int32)
            weights = jnp.where(b % 4 > 0, jnp.exp(12 * unit_float(b) - 6), 0)
            tree = sum_tree.assign(tree, slots, weights)
            return (tree, jnp.minimum(least, tree.total)), None

        return jax.lax.scan(step, (tree, jnp.float32(0)), jax.random.split(key, times))[0]

    tree, least = run(sum_tree.init(capacity))
    assert least >= 0
    weights = np.asarray(tree.leaves)[:capacity]
    assert_sums(tree, weights)
    np.testing.assert_allclose(tree.total, weights.astype(float).sum(), rtol=1e-6)
    # All set to nothing leaves nothing behind.
    tree = assign_range(tree, np.int32(0), np.zeros(capacity, np.float32), capacity=capacity)
    assert_sums(tree, np.zeros(capacity, np.float32))


@pytest.mark.parametrize("capacity", quick.only([1000], CAPACITIES[1:]))
def test_probabilities_are_exact_and_draws_follow_them(capacity):
    rng = np.random.default_rng(capacity)
    weights = rng.exponential(size=capacity).astype(np.float32)
    weights[rng.random(capacity) < 0.3] = 0
    weights[capacity // 2] = weights.sum() / 3 + 1
    tree = assign_range(sum_tree.init(capacity), np.int32(0), weights, capacity=capacity)
    calls, num = 64, 4096
    zeros, slots = draw_often(tree, jax.random.key(1), calls, num)
    assert zeros == 0
    classes = np.arange(capacity) * min(capacity, 100) // capacity
    shares = np.bincount(classes, weights)
    assert_distributed(classes[slots], np.flatnonzero(shares), shares[shares > 0])
    words = jax.random.bits(jax.random.key(2), (3, num))
    slots, found = jax.jit(sum_tree.draw)(tree, unit_float(words[0]), words[1:])
    np.testing.assert_allclose(found, weights[slots] / weights.sum(dtype=float), rtol=1e-6)


def test_nothing_to_draw():
    zeros, slots = draw_often(sum_tree.init(9), jax.random.key(0), 2, 64)
    assert zeros == 128
    assert np.all((slots >= 0) & (slots < 9))


@pytest.mark.long  # 10^7 draws; the conformance test makes fewer
@pytest.mark.parametrize("is_stratified", quick.only([True], [False, True]))
def test_weights_of_zero_are_never_drawn(is_stratified):
    """10^7 draws; zeros alone, in rows, at both ends, beside weights of all sizes."""
    capacity, rng = 1000, np.random.default_rng(7)
    weights = heavy_tailed(rng, capacity)
    weights[rng.random(capacity) < 0.4] = 0
    weights[:13] = weights[-13:] = weights[400:500] = 0
    tree = assign_range(sum_tree.init(capacity), np.int32(0), weights, capacity=capacity)
    zeros, slots = draw_often(tree, jax.random.key(3), 1221, 8192, is_stratified)
    assert slots.size > 10**7
    assert zeros == 0
    assert set(np.flatnonzero(np.bincount(np.ravel(slots)))) <= set(np.flatnonzero(weights))


def test_extreme_positions():
    """0 and just below 1, with words of all ones, meet the first and last weight there is."""
    weights = np.zeros(1000, np.float32)
    weights[[17, 600, 901]] = 1e-3, 1.0, 1e3
    tree = assign_range(sum_tree.init(1000), np.int32(0), weights, capacity=1000)
    positions = np.float32([0, 1 - 2**-24])
    words = np.uint32([[0, 2**32 - 1]] * 2)
    slots, found = sum_tree.draw(tree, positions, words)
    assert slots.tolist() == [17, 901]
    np.testing.assert_allclose(found, np.float32([1e-3, 1e3]) / 1001.001, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["scattered", "contiguous"])
def test_items_of_a_large_memory_can_all_be_drawn(layout):
    """A class of half of 2^20 items whose weight is 1 % of the others': float32 is not enough.

    Its share is 2^24 / 101 positions, a third of its items. False alarm: 1e-6 for the share, and
    the distinct items are 10 standard deviations above the bound.
    """
    capacity, half = 2**20, 2**19
    low = np.arange(capacity) < half
    if layout == "scattered":
        low = np.random.default_rng(0).permutation(low)
    weights = np.where(low, 0.01, 1).astype(np.float32)
    tree = assign_range(sum_tree.init(capacity), np.int32(0), weights, capacity=capacity)
    zeros, slots = draw_often(tree, jax.random.key(5), 160, 2**16)
    assert zeros == 0
    counts = np.bincount(np.ravel(slots), minlength=capacity)[low]
    p, draws, met = 0.01 / 1.01, slots.size, counts.sum()
    assert abs(met - draws * p) < 4.9 * np.sqrt(draws * p * (1 - p))
    distinct = half * (1 - (1 - 1 / half) ** float(met))
    assert (counts > 0).sum() > 0.99 * distinct
