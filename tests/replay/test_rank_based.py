"""Rank-based draws against the documented law, worked out with NumPy's sort."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed

from accel_rl import replay
from accel_rl.replay.rank_based import rank_edges

N, BATCH, CALLS = 1000, 256, 2000
UNIT = np.float32(np.random.default_rng(0).permutation(N) + 1)  # all different
KEYS = jax.random.split(jax.random.key(8), CALLS)


def law(ranked, alpha, capacity=N):
    """P of ranks 1 .. ranked: from 17 on that of the middle of their 16th of an octave."""
    ends = [*range(17), *(int(np.round(2.0 ** (k / 16))) for k in range(64, 600))]
    ends = sorted({min(end, capacity) for end in ends})
    density = np.zeros(capacity)
    for start, end in itertools.pairwise(ends):
        density[start:end] = ((start + 1 + end) / 2) ** -alpha
    return density[:ranked] / density[:ranked].sum()


def by_slot(weights, alpha):
    """The law for slots, from the highest priority down."""
    p = np.zeros(weights.size)
    ranked = int((weights > 0).sum())
    p[np.argsort(-weights)[:ranked]] = law(ranked, alpha, weights.size)
    return p


class Run:
    """A memory and its compiled functions."""

    def __init__(self, capacity=N, batch=BATCH, sort_after=0.25, **options):
        made = replay.make(
            np.int32(0), capacity, batch, replay.rank_based(sort_after), least_size=1, **options
        )
        self.memory, self.update = made, jax.jit(made.update)
        self.add, self.sample = jax.jit(made.add), jax.jit(made.sample)

        def often(state, keys):
            def step(carry, key):
                drawn = made.sample(state, key)
                return carry, (drawn.indices, drawn.probabilities)

            return jax.lax.scan(step, 0, keys)[1]

        self.often = jax.jit(often)

    def filled(self, priorities, alpha=0.7):
        n = len(priorities)
        items = np.arange(n, dtype=np.int32)
        return self.add(self.memory.init(alpha=alpha), items, np.float32(priorities))


@pytest.fixture(scope="module")
def run():
    return Run()


@pytest.fixture(scope="module")
def independent():
    return Run(stratified=False)


def sampler_of(state):
    return state.index.sampler


def set_priorities(run, state, chosen):
    """Update the items at some slots, as if a sample had drawn them; at most a batch."""
    drawn = run.sample(state, jax.random.key(0))
    slots = np.resize(np.fromiter(chosen, np.int32), BATCH)
    here = np.arange(BATCH) < len(chosen)
    values = np.float32([chosen[int(s)] for s in slots])
    sample = type(drawn)(
        drawn.batch,
        jnp.asarray(slots),
        jnp.full(BATCH, 0.5, jnp.float32),
        drawn.weights,
        jnp.zeros(BATCH, jnp.uint32) + drawn.generations[0],
    )
    return run.update(state, sample, values, here)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_draws_after_a_sort(independent, alpha):
    state = independent.filled(UNIT, alpha)
    slots, p = map(np.asarray, independent.often(state, KEYS))
    expected = by_slot(UNIT, alpha)
    assert_distributed(slots, np.arange(N), expected)
    np.testing.assert_allclose(p, expected[slots], rtol=1e-5)
    # All were drawn: their probabilities sum to 1.
    each = np.zeros(N)
    each[slots] = p
    assert (each > 0).all()
    np.testing.assert_allclose(each.sum(), 1, rtol=1e-5)
    # And are near what the paper has, rank^-alpha.
    exact = np.argsort(np.argsort(-UNIT)) + 1.0
    exact = exact**-alpha / (exact**-alpha).sum()
    np.testing.assert_allclose(each, exact, rtol=0.03)


def test_stratified_draws_after_a_sort(run):
    state = run.filled(UNIT)
    slots, p = map(np.asarray, run.often(state, KEYS))
    expected = by_slot(UNIT, 0.7)
    assert_distributed(slots, np.arange(N), expected)
    # Each from its own part: the first rank is wider than many parts, so that its numbers are sure.
    top = (slots == UNIT.argmax()).sum(axis=1)
    assert set(top) <= {int(expected.max() * BATCH), int(expected.max() * BATCH) + 1}
    np.testing.assert_allclose(p, expected[slots], rtol=1e-5)


def test_half_full_and_with_zeros(run):
    priorities = np.where(np.arange(500) % 4 == 0, 0, UNIT[:500])
    state = run.filled(priorities)
    assert int(sampler_of(state).ranked) == 375
    slots, p = map(np.asarray, run.often(state, KEYS[:800]))
    density = law(375, 0.7)  # runs are of the capacity's ranks, cut where items end
    ranked = np.argsort(-priorities)[:375]
    assert_distributed(slots, ranked, density)
    expected = np.zeros(N)
    expected[ranked] = density
    np.testing.assert_allclose(p, expected[slots], rtol=1e-5)


def test_only_the_order_counts(run):
    one, other = run.filled(UNIT), run.filled(UNIT.astype(np.float64) ** 3 * 1e-5)
    for k in range(3):
        a, b = (run.sample(state, jax.random.key(k)) for state in (one, other))
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.probabilities, b.probabilities)


@pytest.mark.long  # compiles several orders
def test_an_old_order_until_enough_has_changed(run):
    """250 of 1000: the 251st change sorts. A changed priority keeps its slot's rank till then."""
    state = run.filled(UNIT)
    low = np.argsort(UNIT)[:100]
    changed = set_priorities(run, state, {int(s): 5000.0 + k for k, s in enumerate(low)})
    assert int(sampler_of(changed).changed) == 100
    np.testing.assert_array_equal(sampler_of(changed).order, sampler_of(state).order)
    slots, _ = map(np.asarray, run.often(changed, KEYS[:500]))
    assert_distributed(slots, np.arange(N), by_slot(UNIT, 0.7))
    more = {int(s): 9000.0 for s in low}
    changed = set_priorities(run, set_priorities(run, changed, more), dict.fromkeys(range(50), 1.5))
    assert int(sampler_of(changed).changed) == 250
    np.testing.assert_array_equal(sampler_of(changed).order, sampler_of(state).order)
    changed = set_priorities(run, changed, {3: 7e7})
    assert int(sampler_of(changed).changed) == 0
    assert int(sampler_of(changed).order[0]) == 3
    weights = np.asarray(sampler_of(changed).blocks.weights)[:N]
    assert (np.diff(weights[np.asarray(sampler_of(changed).order)]) <= 0).all()


def test_items_whose_priority_became_0_are_not_drawn(run):
    state = run.filled(UNIT)
    gone = np.argsort(-UNIT)[:200].tolist()  # the highest, of about half the probability
    changed = set_priorities(run, state, dict.fromkeys(gone, 0.0))
    assert int(sampler_of(changed).changed) == 200
    slots, p = map(np.asarray, run.often(changed, KEYS[:500]))
    drawn = p > 0  # 8 tries may all fail
    assert not np.isin(slots[drawn], gone).any()
    share = by_slot(UNIT, 0.7)[gone].sum()
    assert (~drawn).mean() < 2 * share**9
    left = np.setdiff1d(np.arange(N), gone)
    assert_distributed(slots[drawn], left, by_slot(UNIT, 0.7)[left])


def test_new_items_wait_for_the_next_sort():
    run = Run(sort_after=0.5)
    state = run.filled(UNIT[:100])
    state = run.add(state, np.arange(40, dtype=np.int32))
    assert int(sampler_of(state).changed) == 40
    slots, p = map(np.asarray, run.often(state, KEYS[:500]))
    assert slots.max() < 100
    assert (p > 0).all()
    state = run.add(state, np.arange(11, dtype=np.int32))
    assert (int(sampler_of(state).changed), int(sampler_of(state).ranked)) == (0, 151)
    slots, _ = map(np.asarray, run.often(state, KEYS[:500]))
    assert set(np.unique(slots)) == set(range(151))
    # New items have the highest priority of all, so they are the first, and the old highest.
    first = set(np.asarray(sampler_of(state).order[:52]).tolist())
    assert first == {*range(100, 151), int(UNIT[:100].argmax())}


def test_nothing_to_draw(run):
    state = run.filled(np.zeros(50))
    drawn = run.sample(state, jax.random.key(0))
    np.testing.assert_array_equal(drawn.probabilities, 0)
    np.testing.assert_array_equal(drawn.weights, 0)
    assert ((np.asarray(drawn.indices) >= 0) & (np.asarray(drawn.indices) < N)).all()


def test_least_is_that_of_the_last_rank():
    run = Run(weights_over="buffer")
    state = run.filled(UNIT)
    drawn = run.sample(state, jax.random.key(2), 1.0)
    expected = by_slot(UNIT, 0.7)
    np.testing.assert_allclose(
        drawn.weights, expected.min() / expected[np.asarray(drawn.indices)], rtol=1e-5
    )


@pytest.mark.slow
def test_over_seeds():
    """Sorts fall on different steps: under vmap each still gets what it gets alone."""
    memory = replay.make(np.float32(0), 64, 8, replay.rank_based(0.5), num_envs=2)

    def run(key, scale):
        def step(state, key):
            new = jax.random.uniform(key, (2,))
            state = memory.add(state, new, new * scale + np.float32(0.1))
            drawn = memory.sample(state, key)
            which = jax.random.uniform(key, (8,)) < scale
            state = memory.update(state, drawn, drawn.batch + 1, which)
            return state, (drawn, state.index.sampler.changed)

        state = memory.init(alpha=scale)
        state = memory.add(state, jnp.zeros((4, 2)), jnp.ones((4, 2)))
        return jax.lax.scan(step, state, jax.random.split(key, 40))

    keys, scales = jax.random.split(jax.random.key(4), 3), np.float32([0.2, 0.5, 1.0])
    many = jax.jit(jax.vmap(run))(keys, scales)
    one = jax.jit(run)
    for k in range(3):
        jax.tree.map(
            lambda a, b, k=k: np.testing.assert_allclose(a, b[k], rtol=1e-5, atol=1e-7),
            one(keys[k], scales[k]),
            many,
        )
    assert len({tuple(row) for row in np.asarray(many[1][1]).tolist()}) == 3
    assert (np.asarray(many[1][1]) == 0).sum() > 10


@pytest.mark.parametrize("capacity", [1, 2, 16, 17, 18, 33, 1000, 1024, 1_000_000, 2**31 - 1])
def test_edges_of_runs(capacity):
    edges = rank_edges(capacity)
    assert edges.dtype == np.int32
    assert (edges[0], edges[-1]) == (0, capacity)
    widths = np.diff(edges.astype(np.int64))
    assert (widths > 0).all()
    np.testing.assert_array_equal(edges[:17], np.arange(min(capacity, 16) + 1))
    # Runs are at most a 16th of an octave, and so about 4 % of their rank, and few.
    assert (widths <= np.maximum(1, 0.0443 * edges[:-1] + 1)).all()
    assert edges.size <= 17 + 16 * 31
    for alpha in (0.7, 1.0):
        middle = (edges[1:].astype(float) + edges[:-1] + 1) / 2
        for end in (edges[:-1].astype(float) + 1, edges[1:].astype(float)):
            assert (np.abs((end / middle) ** -alpha - 1) < 0.03).all()


@pytest.mark.parametrize("sort_after", [0.0, -1.0, np.nan])
def test_bad_options(sort_after):
    with pytest.raises(ValueError, match="sort_after must be finite and above 0"):
        replay.rank_based(sort_after)
