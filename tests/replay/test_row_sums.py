"""Sums of rows, by XLA and by the kernels that Pallas interprets, against NumPy and counts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed

from accel_rl import replay
from accel_rl.replay import row_sums, row_sums_pallas

FORMS = {"rows": row_sums, "pallas": row_sums_pallas}
CAPACITY = 300  # rows of 16: the last is not full, and rows are no power of two
forms = pytest.mark.parametrize("form", FORMS)


@functools.cache
def compiled(form):
    """The functions of a form that change a state and draw from one."""
    ops = FORMS[form]
    ranged = functools.partial(ops.assign_range, capacity=CAPACITY)
    return ops.init(CAPACITY), jax.jit(ops.assign), jax.jit(ranged), jax.jit(ops.draw)


def weights_of(rng, n=CAPACITY):
    drawn = rng.lognormal(sigma=1.5, size=n).astype(np.float32)
    return np.where(rng.random(n) < 0.3, np.float32(0), drawn)


@forms
def test_assignments_keep_the_last_of_each_slot_and_the_sums_of_rows(form):
    rng = np.random.default_rng(1)
    state, assign, assign_range, _ = compiled(form)
    expected = np.zeros(state.weights.size, np.float32)
    for first in (0, CAPACITY - 20):
        new = weights_of(rng, 64)
        state = assign_range(state, np.int32(first), new)
        expected[(first + np.arange(64)) % CAPACITY] = new
    slots = rng.integers(0, 40, 64, dtype=np.int32)  # most of them more than once
    slots[:3] = -1, state.weights.size, 2**31 - 1
    new = weights_of(rng, 64)
    state = assign(state, slots, new)
    for slot, weight in zip(slots[3:], new[3:], strict=True):
        expected[slot] = weight
    np.testing.assert_array_equal(state.weights, expected)
    rows = expected.reshape(state.sums.size, -1)
    np.testing.assert_allclose(state.sums, rows.sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(state.peaks, rows.max(axis=1))
    ops = FORMS[form]
    np.testing.assert_allclose(ops.total(state), expected.sum(dtype=float), rtol=1e-6)
    assert ops.highest(state) == expected.max()


@forms
def test_draws_are_where_the_cumulative_weights_reach_the_positions(form):
    rng = np.random.default_rng(2)
    state, _, assign_range, draw = compiled(form)
    weights = weights_of(rng)
    state = assign_range(state, np.int32(0), weights)
    ends = np.cumsum(weights.astype(float))
    positions = rng.random(64).astype(np.float32)
    apart = np.abs(ends[:, None] - positions * ends[-1]).min(axis=0) > 1e-5 * ends[-1]
    assert apart.sum() > 50
    slots, probabilities = draw(state, positions, np.zeros((1, 64), np.uint32))
    wanted = np.searchsorted(ends, positions * ends[-1], side="right")
    np.testing.assert_array_equal(np.asarray(slots)[apart], wanted[apart])
    np.testing.assert_allclose(probabilities, weights[slots] / ends[-1], rtol=2e-6)


@forms
def test_positions_at_the_ends_find_items_of_positive_weight(form):
    state, _, assign_range, draw = compiled(form)
    weights = np.zeros(CAPACITY, np.float32)
    assert (draw(state, np.zeros(64, np.float32), np.zeros((1, 64), np.uint32))[1] == 0).all()
    weights[[17, 18, 250]] = 1e-20, 1, 1e-9
    state = assign_range(state, np.int32(0), weights)
    positions = np.full(64, 1 - 2**-24, np.float32)
    positions[:2] = 0, 2**-24
    slots, probabilities = draw(state, positions, np.full((1, 64), 2**32 - 1, np.uint32))
    assert set(np.asarray(slots).tolist()) <= {17, 18, 250}
    assert (np.asarray(probabilities) > 0).all()


@forms
def test_draws_follow_the_weights_under_vmap_and_scan(form):
    """Fixed keys; else a right form would fail with a probability of 1e-6 for each of two seeds."""
    memory = replay.make(np.int32(0), CAPACITY, 64, replay.prioritised(form))
    weights = 0.3 + np.random.default_rng(3).exponential(size=(2, CAPACITY)).astype(np.float32)

    def run(key, weights):
        state = memory.init(alpha=1.0)
        state = memory.add(state, np.arange(CAPACITY, dtype=np.int32), weights)

        def step(state, key):
            drawn = memory.sample(state, key)
            state = memory.update(state, drawn, weights[drawn.indices])
            return state, drawn.indices

        return jax.lax.scan(step, state, jax.random.split(key, 256))[1]

    slots = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(4), 2), weights)
    for found, law in zip(slots, weights, strict=True):
        assert_distributed(found, np.arange(CAPACITY), law)


@pytest.mark.skipif(
    jax.__version_info__ >= (0, 11), reason="from jax 0.11 on Triton lowering asks for a GPU"
)
def test_the_kernels_lower_for_cuda_and_take_the_sums_in_place():
    memory = replay.make(np.int32(0), 1_000_000, 256, replay.prioritised("pallas"), num_envs=16)

    def step(state, items, key):
        state = memory.add(state, items)
        drawn = memory.sample(state, key)
        return memory.update(state, drawn, drawn.probabilities)

    arguments = jax.eval_shape(memory.init), jnp.zeros(16, jnp.int32), jax.random.key(0)
    traced = jax.jit(step, donate_argnums=0).trace(*arguments)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("__gpu$xla.gpu.triton") == 5  # two for each change, one for the draw
    assert "output_operand_aliases" in text
