"""Draws through `Replay.sample` against exact probabilities.

Keys are fixed: a right memory passes always or never. Had they not been, each test would refuse a
right memory with a probability of at most 1e-6, or what it says.
"""

import functools

import jax
import numpy as np
import pytest
import quick
from conformance import ALPHA, SAMPLERS
from scipy import stats

from accel_rl import replay

N, BATCH, CALLS = 1024, 256, 4096  # 2^20 draws
FALSE_ALARM = 1e-6
SLOW = pytest.mark.slow
CASES = {name: case for name, case in SAMPLERS.items() if case.probabilities is not None}
# In `make test` the tree draws independently, and the others stratified.
INDEPENDENT = ["tree"]
STRATIFIED = set(CASES) - {"tree"}


@functools.cache
def memory(name, is_stratified):
    """A full memory, some laps old, with priorities that add and update gave, and its draws."""
    case, rng = SAMPLERS[name], np.random.default_rng(12)
    made = replay.make(np.int32(0), N, BATCH, case.make(), stratified=is_stratified)
    add, sample, update = map(jax.jit, (made.add, made.sample, made.update))
    state, weights = made.init(**case.hyperparameters), np.ones(N)
    for k in range(9):
        given = rng.exponential(size=N // 4).astype(np.float32) + np.float32(0.02)
        state = add(state, np.arange(N // 4, dtype=np.int32), given)
        weights[(k * N // 4 + np.arange(N // 4)) % N] = given.astype(float) ** ALPHA
    for k in range(4):
        drawn = sample(state, jax.random.key(k))
        new = rng.exponential(size=BATCH).astype(np.float32) + np.float32(0.02)
        state = update(state, drawn, new)
        for slot, priority in zip(drawn.indices, new, strict=True):
            weights[int(slot)] = float(priority) ** ALPHA
    weights = weights if case.prioritised else np.ones(N)

    @jax.jit
    def run(state):
        def step(carry, key):
            drawn = made.sample(state, key)
            return carry, (drawn.indices, drawn.probabilities)

        return jax.lax.scan(step, 0, jax.random.split(jax.random.key(99), CALLS))[1]

    slots, found = map(np.asarray, run(state))
    return weights / weights.sum(), slots, found


def statistic(expected, slots):
    counts = np.bincount(slots.ravel(), minlength=N)
    assert counts.size == N
    wanted = expected * slots.size
    assert wanted.min() > 5
    return float(((counts - wanted) ** 2 / wanted).sum())


@pytest.mark.parametrize("name", quick.only(INDEPENDENT, CASES))
def test_independent_draws(name):
    """Chi-square, two-sided: neither too far from the probabilities nor too near."""
    expected, slots, found = memory(name, False)
    np.testing.assert_allclose(found, expected[slots], rtol=2e-6)
    value = statistic(expected, slots)
    assert stats.chi2.sf(value, N - 1) > FALSE_ALARM / 2
    assert stats.chi2.cdf(value, N - 1) > FALSE_ALARM / 2
    # Calls are independent of each other, and so are lanes: pairs of 16 classes of alike mass.
    classes = (np.cumsum(expected) - expected / 2) * 16 // 1
    for first, second in ((slots[:-1], slots[1:]), (slots[:, :-1], slots[:, 1:])):
        table = np.zeros((16, 16))
        np.add.at(table, tuple(classes[x.ravel()].astype(int) for x in (first, second)), 1)
        assert stats.chi2_contingency(table, correction=False).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", quick.only(STRATIFIED, CASES))
def test_stratified_draws(name):
    """Chi-square, one-sided: nearer than independent draws is what they are for."""
    expected, slots, found = memory(name, True)
    np.testing.assert_allclose(found, expected[slots], rtol=2e-6)
    assert stats.chi2.sf(statistic(expected, slots), N - 1) > FALSE_ALARM


@pytest.mark.parametrize("name", quick.only(["tree", "uniform"], CASES))
def test_stratified_draws_meet_each_part_once(name):
    """256 draws of 1024 equal items: four of them are a part."""
    made = replay.make(np.int32(0), N, BATCH, SAMPLERS[name].make())
    state = jax.jit(made.add)(made.init(), np.arange(N, dtype=np.int32))
    drawn = jax.jit(made.sample)(state, jax.random.key(0))
    parts = np.asarray(drawn.indices) * BATCH // N
    np.testing.assert_array_equal(np.bincount(parts, minlength=BATCH), 1)


@pytest.mark.parametrize("name", quick.only(set(CASES) - {"uniform", "tree", "wide"}, CASES))
def test_weights_over_the_buffer_are_at_most_1(name):
    """In (0, 1] whatever the rounding, compiled or not."""
    case = SAMPLERS[name]
    made = replay.make(np.int32(0), 1000, 512, case.make(), weights_over="buffer")
    add, state = jax.jit(made.add), made.init(**case.hyperparameters)
    sample, largest = jax.jit(made.sample), []
    for seed in range(10):
        priorities = np.random.default_rng(seed).random(1000) + 0.01
        priorities[:500] = 0.01
        state = add(state, np.zeros(1000, np.int32), np.float32(priorities))
        for draw in (sample, made.sample) if seed == 0 else (sample,):
            largest += [float(np.max(draw(state, jax.random.key(seed)).weights))]
    assert max(largest) <= 1


@pytest.mark.parametrize(
    ("name", "is_stratified"),
    [
        *(pytest.param(name, False, marks=() if name in INDEPENDENT else SLOW) for name in CASES),
        *(pytest.param(name, True, marks=() if name in STRATIFIED else SLOW) for name in CASES),
    ],
)
def test_importance_weights_make_means_unbiased(name, is_stratified):
    """Within 5 standard deviations of the true mean: 6e-7; stratified ones are smaller still."""
    expected, slots, found = memory(name, is_stratified)
    values = np.random.default_rng(3).normal(size=N) + N * expected
    estimate = (values[slots] / (N * found.astype(float))).mean()
    second = (values**2 / (N**2 * expected)).sum()
    sigma = np.sqrt((second - values.mean() ** 2) / slots.size)
    assert abs(estimate - values.mean()) < 5 * sigma
    if SAMPLERS[name].prioritised:  # and without them they are not
        assert abs(values[slots].mean() - (expected * values).sum()) < 0.01
        biased = np.abs((expected * values).sum() - values.mean())
        assert biased > 5 * sigma
