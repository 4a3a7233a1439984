"""Draws by rejection: uniform, independent, honest about what they tried."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed, assert_independent

from accel_rl import am
from accel_rl.words import high_product, mixed_words, stream_seeds

LINES = np.random.default_rng(0).random(3000) < 0.15
CALLS, NUM = 1500, 64


@functools.partial(jax.jit, static_argnames=("num", "proposals", "rounds"))
def draw(key, lines, count, num=NUM, proposals=16, rounds=8):
    def member(slots):
        return lines[slots]

    return am.draw_by_rejection(key, member, count, num, proposals=proposals, rounds=rounds)


@jax.jit
def draw_often(keys, lines, count):
    _, found = jax.lax.scan(lambda c, key: (c, draw(key, lines, count)), 0, keys)
    return found


def test_draws_are_uniform_and_independent():
    keys = jax.random.split(jax.random.key(1), CALLS)
    slots, accepted, tried = map(np.asarray, draw_often(keys, LINES, 3000))
    assert slots.dtype == np.int32
    matches = np.flatnonzero(LINES)
    assert_distributed(slots, matches)
    tenths = np.searchsorted(matches, slots) * 10 // matches.size
    assert_independent(tenths[:, :-1], tenths[:, 1:], 10)  # of lanes
    assert_independent(tenths[:-1], tenths[1:], 10)  # of calls
    assert_independent(tenths[:, 0], tenths[:, -1], 10)
    # Every lane on its own is uniform over tenths: 64 tests of 1e-6.
    for lane in tenths.T:
        assert_distributed(
            lane, np.arange(10), np.bincount(np.arange(matches.size) * 10 // matches.size)
        )
    ratio = accepted.sum() / tried.sum()
    sigma = np.sqrt(LINES.mean() * (1 - LINES.mean()) / tried.sum())
    assert abs(ratio - LINES.mean()) < 5 * sigma
    assert (accepted >= NUM).all()
    assert set(tried) <= set(range(0, 8 * NUM * 16 + 1, NUM * 16))


@pytest.mark.long  # a second compilation of the draws
def test_few_proposals_take_several_rounds_and_stay_uniform():
    keys = jax.random.split(jax.random.key(2), 400)
    few = functools.partial(draw, proposals=1, rounds=200)
    slots, accepted, tried = map(
        np.asarray, jax.vmap(few, in_axes=(0, None, None))(keys, LINES, 3000)
    )
    assert (tried > NUM).all()
    assert (accepted >= NUM).all()
    assert_distributed(slots, np.flatnonzero(LINES))


def test_count_is_traced_and_bounds_the_draws():
    keys = jax.random.split(jax.random.key(3), CALLS)
    for count in (1500, 10):
        lines = np.zeros(3000, bool)
        lines[:count:3] = True
        lines[count:] = True
        slots, _, _ = draw_often(keys, lines, jnp.int32(count))
        assert_distributed(slots, np.arange(0, count, 3))


def test_a_single_slot():
    slots, _, _ = draw(jax.random.key(0), np.ones(3000, bool), 1)
    np.testing.assert_array_equal(slots, 0)


@pytest.mark.parametrize("count", [3000, 0])
def test_nothing_to_draw(count):
    slots, accepted, tried = draw(jax.random.key(0), np.full(3000, count == 0), count)
    np.testing.assert_array_equal(slots, -1)
    assert accepted == 0
    assert tried == 8 * NUM * 16


def test_out_of_rounds_leaves_the_last_draws_missing():
    lines = np.zeros(3000, bool)
    lines[77] = True
    slots, accepted, tried = draw(jax.random.key(5), lines, 3000, rounds=5)
    assert 0 < accepted < NUM
    assert tried == 5 * NUM * 16
    np.testing.assert_array_equal(slots[:accepted], 77)
    np.testing.assert_array_equal(slots[accepted:], -1)


def test_vmap_equals_calls_one_by_one():
    keys = jax.random.split(jax.random.key(4), 3)
    lines = np.random.default_rng(1).random((3, 3000)) < np.array([[0.9], [0.02], [0.0]])
    counts = np.array([3000, 2000, 100], np.int32)
    together = jax.vmap(draw)(keys, lines, counts)
    alone = [draw(*arguments) for arguments in zip(keys, lines, counts, strict=True)]
    for found, expected in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.stack(expected))


def test_randomised_members_are_drawn_in_proportion():
    weights = np.linspace(0.02, 0.6, 50)
    limits = (weights * 2**32).astype(np.uint32)

    @jax.jit
    @jax.vmap
    def draw_weighted(key):
        def member(slots, words):
            return words < jnp.asarray(limits)[slots]

        return am.draw_by_rejection(key, member, 50, NUM, randomised=True)

    slots, accepted, tried = draw_weighted(jax.random.split(jax.random.key(6), CALLS))
    assert_distributed(slots, np.arange(50), weights)
    assert abs(accepted.sum() / tried.sum() - weights.mean()) < 0.01


@pytest.mark.long  # over a million words
def test_words_are_uniform_and_uncorrelated():
    """The mixer alone: every byte, neighbours, streams of close seeds, and the second word."""
    counter = jnp.arange(2048, dtype=jnp.uint32)
    keys = jax.random.split(jax.random.key(7), 200)
    first, second = jax.vmap(lambda key: mixed_words(stream_seeds(key), counter))(keys)
    # Seeds that differ in one low bit, as no random key gives them.
    close = np.arange(200, dtype=np.uint32)[:, None] * np.array([[1, 0, 0]], np.uint32)
    near, _ = jax.vmap(lambda seeds: mixed_words(seeds, counter))(jnp.asarray(close))
    for words in map(np.asarray, (first, second, near)):
        for shift in (0, 8, 16, 24):
            assert_distributed(words >> shift & 255, np.arange(256))
        assert_independent(words[:, :-1] >> 28, words[:, 1:] >> 28, 16)
        assert_independent(words[:-1] >> 28, words[1:] >> 28, 16)
        assert_independent(words[:, :-1] & 15, words[:, 1:] >> 28, 16)
    assert_independent(np.asarray(first) >> 28, np.asarray(second) >> 28, 16)
    assert_independent(np.asarray(first) & 15, np.asarray(second) & 15, 16)


def test_high_product():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2**32, (2, 1000), dtype=np.uint32)
    a[:3], b[:3] = (0, 2**32 - 1, 2**32 - 1), (5, 2**32 - 1, 1)
    expected = (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)
    np.testing.assert_array_equal(high_product(jnp.asarray(a), jnp.asarray(b)), expected)


def reject(member=lambda slots: slots > 3, **changes):
    arguments = {"count": 10, "num": 4, "proposals": 8, "rounds": 2} | changes
    return am.draw_by_rejection(jax.random.key(0), member, **arguments)


@pytest.mark.parametrize(
    ("error", "message", "changes"),
    [
        (ValueError, "count must be from 0 to 2147483647, got -1", {"count": -1}),
        (TypeError, "count must be an int, got 1.5", {"count": 1.5}),
        (
            TypeError,
            "member's result must be bool, got int32",
            {"member": lambda slots: slots},
        ),
        (ValueError, "member's result must have shape", {"member": lambda slots: slots[:2] > 3}),
        (ValueError, "num must be at least 1, got 0", {"num": 0}),
        (TypeError, "num must be an int, got 1.0", {"num": 1.0}),
        (ValueError, "proposals must be at least 1, got 0", {"proposals": 0}),
        (ValueError, "rounds must be at least 1, got 0", {"rounds": 0}),
        (ValueError, r"num \* proposals \* rounds must be below 2\*\*31", {"rounds": 2**30}),
    ],
)
def test_bad_arguments(error, message, changes):
    with pytest.raises(error, match=message):
        reject(**changes)
