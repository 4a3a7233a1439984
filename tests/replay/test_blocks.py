"""Sums and peaks of blocks against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.replay import blocks

assign = jax.jit(blocks.assign)


def check(state, weights, width):
    rows = np.zeros(state.weights.shape[0])
    rows[: weights.size] = weights
    rows = rows.reshape(-1, width)
    np.testing.assert_array_equal(state.weights, rows.ravel().astype(np.float32))
    np.testing.assert_allclose(state.sums, rows.sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(state.peaks, rows.max(axis=1).astype(np.float32))
    np.testing.assert_allclose(state.total, rows.sum(), rtol=1e-6)
    np.testing.assert_array_equal(state.highest, rows.max().astype(np.float32))


@pytest.mark.parametrize(
    ("capacity", "width"), [(1, 1), (2, 1), (7, 2), (64, 8), (1000, 32), (70_000, 256)]
)
def test_against_numpy(capacity, width):
    rng = np.random.default_rng(capacity)
    state, weights = blocks.init(capacity), np.zeros(capacity)
    assert state.weights.shape[0] // state.sums.shape[0] == width
    assert 0 <= state.weights.shape[0] - capacity < width
    n = min(capacity, 16)
    for k in range(30):
        slots = rng.choice(capacity, n, replace=False).astype(np.int32)
        new = np.float32(rng.exponential(size=n) * (rng.random(n) < 0.8))
        left_out = rng.random(n) < 0.3 if k % 3 == 0 else np.zeros(n, bool)
        given = np.where(left_out, [-1, state.weights.shape[0]][k % 2], slots).astype(np.int32)
        state = assign(state, given, new)
        weights[slots[~left_out]] = new[~left_out]
        check(state, weights, width)
    for start in range(0, capacity, max(n, 1)):  # all zero again: nothing must be left over
        slots = np.minimum(start + np.arange(n), capacity).astype(np.int32)
        slots = np.where(slots >= capacity, -1, slots).astype(np.int32)
        if capacity > 1000:
            break
        state = assign(state, slots, np.zeros(n, np.float32))
    if capacity <= 1000:
        np.testing.assert_array_equal([state.total, state.highest], 0)


@pytest.mark.parametrize("capacity", [1000])
def test_no_drift(capacity):
    """1e5 heavy-tailed changes, over 20 factors of ten: peers' trees are off by 2e-4 then."""
    rng = np.random.default_rng(1)
    calls, n = 2000, 50
    slots = np.int32([rng.choice(capacity, n, replace=False) for _ in range(calls)])
    values = np.float32(10.0 ** rng.uniform(-12, 8, slots.shape))

    @jax.jit
    def run(state, slots, values):
        step = lambda state, given: (blocks.assign(state, *given), None)  # noqa: E731
        return jax.lax.scan(step, state, (slots, values))[0]

    state, weights = run(blocks.init(capacity), slots, values), np.zeros(capacity)
    for s, v in zip(slots, values, strict=True):
        weights[s] = v
    np.testing.assert_allclose(state.total, weights.sum(), rtol=1e-6)
    check(state, weights, 32)
    state = run(state, slots, np.full_like(values, 1e-6))
    weights[np.unique(slots)] = np.float32(1e-6)
    check(state, weights, 32)  # nothing is left of what was 1e14 times as large


def test_last_of_each():
    rng = np.random.default_rng(0)
    for n in (1, 5, 40):
        slots = rng.integers(-1, 8, n).astype(np.int32)
        expected = [slots[k] not in slots[k + 1 :] for k in range(n)]
        np.testing.assert_array_equal(blocks.last_of_each(jnp.asarray(slots)), expected)


def test_around():
    np.testing.assert_array_equal(blocks.around(jnp.int32(5), 4, 7), [5, 6, 0, 1])
    np.testing.assert_array_equal(blocks.around(jnp.int32(0), 3, 3), [0, 1, 2])


def test_over_seeds():
    rng = np.random.default_rng(5)
    slots = np.int32([rng.permutation(7)[:4] for _ in range(3)])
    values = np.float32(rng.random((3, 4)))
    many = jax.vmap(assign, in_axes=(None, 0, 0))(blocks.init(7), slots, values)
    for k in range(3):
        one = assign(blocks.init(7), slots[k], values[k])
        jax.tree.map(lambda a, b, k=k: np.testing.assert_allclose(a, b[k], rtol=1e-6), one, many)
