"""64-bit arithmetic on 32-bit words, and exact merges, against Python integers."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

from accel_rl.pim import merge, wide

COUNT = 16
INT64 = st.lists(st.integers(-(2**61), 2**61), min_size=COUNT, max_size=COUNT)


def as_wide(values):
    words = [(v >> 32 & 0xFFFFFFFF, v & 0xFFFFFFFF) for v in values]
    return wide.Wide(*(jnp.asarray(np.asarray(w, np.uint32)) for w in zip(*words, strict=True)))


def as_ints(x):
    bits = np.asarray(x.high).astype(np.uint64) << np.uint64(32) | np.asarray(x.low)
    return bits.astype(np.int64).tolist()


@hypothesis.given(INT64, INT64, st.integers(0, 31))
def test_sums_negations_and_shifts(xs, ys, bits):
    total = wide.add(as_wide(xs), as_wide(ys))
    assert as_ints(total) == [x + y for x, y in zip(xs, ys, strict=True)]
    assert as_ints(wide.negate(as_wide(xs))) == [-x for x in xs]
    wrapped = [((x << bits) + 2**63) % 2**64 - 2**63 for x in xs]
    assert as_ints(wide.shift_left(as_wide(xs), bits)) == wrapped


divide = jax.jit(wide.divide_rounded)


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(1, 2**32 - 1)),
        min_size=COUNT,
        max_size=COUNT,
    ),
    st.floats(-0.5, 0.5),
)
def test_division_rounds_half_away_from_zero(pairs, fraction):
    # Dividends whose quotient fits an int32, halves among them.
    dividends = [q * d + int(fraction * d) for q, d in pairs]
    divisors = jnp.asarray(np.asarray([d for _, d in pairs], np.uint32))
    truth = [oracle.half_away(x, d) for x, (_, d) in zip(dividends, pairs, strict=True)]
    assert divide(as_wide(dividends), divisors).tolist() == truth


@pytest.mark.long  # compiles each merge for many visits
def test_int32_merge_is_exact_at_the_extremes():
    rng = np.random.default_rng(0)
    limit = 2**31 - 1
    tables = rng.choice(np.asarray([-limit, limit, 0, 1, -1], np.int32), (9, 20))
    base = rng.choice(np.asarray([-limit, limit, 7], np.int32), 20)
    visits = rng.integers(0, 3_000_000, (9, 20)).astype(np.uint32)
    visits[:, 3] = 0
    for name in merge.MERGES:
        bound = merge.weight_bound(name, 9, 2**25)
        merged = merge.merge_tables(
            name, *map(jnp.asarray, (tables, base, visits)), jnp.float32(0.1), bound
        )
        truth = oracle.merge(name, tables, base, visits.astype(np.int64), 0.1)
        np.testing.assert_array_equal(merged, truth)


def test_too_many_visits_for_an_exact_int32_merge_are_refused():
    tables = jnp.zeros((2, 3), jnp.int32)
    visits = jnp.zeros((2, 3), jnp.uint32)
    with pytest.raises(ValueError, match=r"fewer than 1073741824 .* got up to 1073741824"):
        merge.merge_tables("visits", tables, tables[0], visits, jnp.float32(0.1), 2**30)


def test_pairwise_sum_is_the_stated_tree():
    x = np.random.default_rng(1).normal(size=(11, 4)).astype(np.float32)
    np.testing.assert_array_equal(merge.pairwise_sum(jnp.asarray(x)), oracle.pairwise(x))


def test_damped_weights_approach_their_definition():
    weights = np.asarray(merge.damped_weights(jnp.float32(0.1))) / 32_768
    np.testing.assert_allclose(weights, 1 - 0.9 ** np.arange(256), atol=3e-4)
