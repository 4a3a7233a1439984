"""Sampling orders and their generator against plain Python."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import quick
import scipy.stats

from accel_rl.tabular import make_order, random
from accel_rl.tabular.orders import row_index
from accel_rl.words import high_product

KEY = random.stream_key(3, 1, 5, random.ORDER_STREAM)


@functools.partial(jax.jit, static_argnums=(0, 1))
def index_of(order, capacity, length, key):
    return row_index(order, capacity, length, key)


@pytest.mark.parametrize("name", ["SEQ", "STR", "RAN", "RAN_REPLACEMENT"])
@pytest.mark.parametrize("capacity", quick.only([1, 7, 300], [1, 7, 128, 300]))
@pytest.mark.parametrize("missing", [0, 1])
def test_orders_equal_plain_python(name, capacity, missing):
    length = max(capacity - missing, 0)
    order = make_order(name, stride=3)
    index = index_of(order, capacity, jnp.int32(length), KEY).tolist()
    truth = oracle.order_of(name, 3, length, oracle.stream(3, 1, 5, 1))
    assert index == truth + list(range(length, capacity))
    if name != "RAN_REPLACEMENT":
        assert sorted(index) == list(range(capacity))


def test_passes_and_dpus_have_orders_of_their_own():
    order = make_order("RAN")
    orders = {
        tuple(index_of(order, 300, jnp.int32(300), random.stream_key(seed, p, dpu, 1)).tolist())
        for seed in (0, 1)
        for p in (0, 1)
        for dpu in (0, 1)
    }
    assert len(orders) == 8


def test_a_stride_longer_than_the_chunk_is_sequential():
    assert index_of(make_order("STR", 9), 4, jnp.int32(4), KEY).tolist() == [0, 1, 2, 3]


def test_bad_orders_are_named():
    with pytest.raises(ValueError, match=r"order must be one of SEQ, .*'ZIG'"):
        make_order("ZIG")
    with pytest.raises(ValueError, match="stride must be at least 1, got 0"):
        make_order("STR", 0)


def test_ran_refuses_more_blocks_than_its_draws_can_name():
    with pytest.raises(ValueError, match="at most 8388608 rows, got 8388609"):
        row_index(make_order("RAN"), 8_388_609, jnp.int32(1), KEY)


def test_jumping_ahead_equals_stepping():
    lcg = oracle.stream(9, 4, 2, 2)
    key = random.stream_key(9, 4, 2, random.ACTION_STREAM)
    assert int(key) == lcg.state
    assert random.lcg_draws(key, 3_000).tolist() == [lcg.draw() for _ in range(3_000)]


def test_high_word_of_a_product_without_64_bits():
    rng = np.random.default_rng(0)
    draws, n = rng.integers(0, 2**32, (2, 1000), dtype=np.uint32)
    product = high_product(jnp.asarray(draws), jnp.asarray(n))
    np.testing.assert_array_equal(product, (draws.astype(np.uint64) * n) >> np.uint64(32))


@pytest.mark.parametrize("consecutive", ["dpus", "passes", "seeds"])
def test_first_draws_of_neighbouring_streams_are_uniform(consecutive):
    # Chi-square over 64 cells; each case fails by chance once in 10**6 runs of new data. The data
    # are fixed, so a pass stays a pass.
    count = jnp.arange(64_000, dtype=jnp.uint32)
    words = {"dpus": (1, 2, count), "passes": (1, count, 2), "seeds": (count, 1, 2)}[consecutive]
    draws = np.asarray(random.lcg_next(random.stream_key(*words, random.ORDER_STREAM)))
    cells = np.bincount(draws >> 26, minlength=64)
    assert scipy.stats.chisquare(cells).pvalue > 1e-6
    pairs = np.bincount((draws[:-1] >> 29) * 8 + (draws[1:] >> 29), minlength=64)
    assert scipy.stats.chisquare(pairs).pvalue > 1e-6


def test_every_position_of_a_random_order_is_equally_likely():
    # Chi-square of where row 5 of 20 comes, over 4,000 DPUs; false alarms once in 10**6.
    keys = random.stream_key(0, 0, jnp.arange(4_000, dtype=jnp.uint32), random.ORDER_STREAM)
    order = make_order("RAN")
    index = jax.jit(jax.vmap(lambda key: row_index(order, 20, jnp.int32(20), key)))(keys)
    position = np.argmax(np.asarray(index) == 5, axis=1)
    assert scipy.stats.chisquare(np.bincount(position, minlength=20)).pvalue > 1e-6
