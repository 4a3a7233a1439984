"""Merges, alone: against their definitions in Python's integers and NumPy's floats."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

from accel_rl.pim import merge

ALPHA = 0.1


@functools.partial(jax.jit, static_argnums=(0, 1))
def merged(name, most, tables, base, visits):
    bound = merge.weight_bound(name, len(tables), most)
    return merge.merge_tables(name, tables, base, visits, jnp.float32(ALPHA), bound)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", merge.MERGES)
def test_merges_of_few_visits(name, dtype):
    """Entries that nobody, one DPU once, one DPU often, and several DPUs updated."""
    visits = np.array([[0, 1, 0, 2, 1, 3], [0, 0, 5, 2, 1, 0], [0, 0, 0, 0, 1, 1]], np.uint32)
    tables = np.random.default_rng(2).integers(-1000, 1000, visits.shape).astype(dtype)
    base = np.array([7, -3, 0, 12, 500, -500], dtype)
    truth = oracle.merge(name, tables, base, visits.astype(np.int64), ALPHA)
    found = merged(name, 8, tables, base, visits)
    np.testing.assert_allclose(found, truth, rtol=1e-5 if dtype == np.float32 else 0)


@pytest.mark.long  # compiles each merge for many visits
def test_int32_merge_is_exact_at_the_extremes():
    rng = np.random.default_rng(0)
    limit = 2**31 - 1
    tables = rng.choice(np.asarray([-limit, limit, 0, 1, -1], np.int32), (9, 20))
    base = rng.choice(np.asarray([-limit, limit, 7], np.int32), 20)
    visits = rng.integers(0, 3_000_000, (9, 20)).astype(np.uint32)
    visits[:, 3] = 0
    for name in merge.MERGES:
        truth = oracle.merge(name, tables, base, visits.astype(np.int64), ALPHA)
        np.testing.assert_array_equal(merged(name, 2**25, tables, base, visits), truth)


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
