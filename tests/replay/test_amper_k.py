"""AMPER-k: counts, radii, candidate sets against NumPy's sort, and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed
from test_amper import DRAWS, GROUPS, LARGE, UNIT, N, divergence, large, queries_of, words_of

from accel_rl import replay
from accel_rl.replay.amper_k import _radius
from accel_rl.replay.key_counts import KEYS, key_counts, key_of
from accel_rl.words import SEEDS

FULL = replay.Span(jnp.int32(0), jnp.int32(N))
forms = pytest.mark.parametrize(
    "form", ["match", pytest.param("rejection", marks=pytest.mark.slow)]
)
long_forms = pytest.mark.parametrize(
    "form",
    [
        pytest.param("match", marks=pytest.mark.long),
        pytest.param("rejection", marks=pytest.mark.slow),
    ],
)


def built(form="match", groups=GROUPS):
    made = replay.amper_k(groups=groups, form=form)(replay.Ring(N), False)
    return made, jax.jit(made.draw), jax.jit(made.assign), jax.jit(made.assign_range)


def counts_of(weights):
    """Weights above 0 by the upper 16 of a float32's 31 bits but the sign; minus their number."""
    keys = np.float32(weights[weights > 0]).view(np.uint32) >> 15
    return np.append(np.bincount(keys, minlength=KEYS), -keys.size).astype(np.int32)


def test_counts_are_a_histogram_of_the_weights():
    """After assignments with duplicates, slots off the end, zeros, and ranges around the end."""
    made, _, assign, assign_range = built()
    rng = np.random.default_rng(0)
    state, weights = made.init(), np.zeros(N, np.float32)
    for k in range(30):
        values = np.float32(10.0 ** rng.uniform(-20, 20, 50) * (rng.random(50) < 0.8))
        if k % 3 == 2:
            first = int(rng.integers(N))
            state = assign_range(state, jnp.int32(first), values)
            weights[(first + np.arange(50)) % N] = values
        else:
            slots = rng.integers(-3, N + 3, 50) if k % 2 else rng.integers(0, 9, 50)
            slots = np.where(slots < 0, N + 7, slots).astype(np.int32)
            slots = np.where(slots >= N, 1 << 30, slots).astype(np.int32)
            state = assign(state, slots, values)
            for slot, value in zip(slots, values, strict=True):
                if slot < N:
                    weights[slot] = value
        np.testing.assert_array_equal(state.blocks.weights[:N], weights)
        np.testing.assert_array_equal(state.counts, counts_of(weights))


@pytest.mark.parametrize("law", ["uniform", "exponential", "log"])
def test_radii_hold_the_number_that_is_wanted(law):
    """Up to the weights in the keys at the two ends, over which counts are taken as even."""
    rng = np.random.default_rng(1)
    n = 3000
    weights = np.float32(
        {
            "uniform": rng.random(n),
            "exponential": rng.exponential(size=n),
            "log": 10.0 ** rng.uniform(-3, 0, n),
        }[law]
    )
    highest = weights.max()
    counts = key_counts(counts_of(weights), highest)
    values = np.float32(np.concatenate([rng.random(30), [0.02, 1.0]]) * highest)
    sorted_distances = np.sort(np.abs(weights - values[:, None]), axis=1)
    for number in (1, 10, 100, 1000, n):
        wanted = np.full(values.size, number, np.float32)
        found = np.asarray(jax.jit(_radius)(counts, values, wanted, highest))
        for value, radius, distances in zip(values, found, sorted_distances, strict=True):
            held = (distances <= radius).sum()
            ends = np.float32([max(value - radius, 0), value + radius, value])
            at_ends = sum(np.sum(np.asarray(key_of(weights)) == int(key_of(e))) for e in ends)
            # A step of the bisection may hold some as well, at either end.
            step = 2 * float(highest) * 2.0**-16
            near = ((distances > radius - step) & (distances <= radius + step)).sum()
            assert abs(held - number) <= at_ends + near + 1
            true = distances[number - 1]
            assert abs(radius - true) <= 2 * step + (value + true) / 128 or held == number


@forms
def test_the_set_is_about_that_of_best_match_searches(form):
    rng = np.random.default_rng(2)
    weights = np.float32(np.where(rng.random(N) < 0.1, 0, rng.random(N)))
    made, draw, assign, _ = built(form)
    csp_ratio = 0.3
    state = assign(made.init(alpha=1.0, csp_ratio=csp_ratio), np.arange(N, dtype=np.int32), weights)
    rate = csp_ratio / weights.mean()
    for seed in range(3):
        words = words_of(seed)
        value = (np.arange(GROUPS) + queries_of(words)[0]) / GROUPS * weights.max()
        group = np.minimum((weights / weights.max() * GROUPS).astype(int), GROUPS - 1)
        size = np.bincount(group[weights > 0], minlength=GROUPS)
        expected = np.zeros(N, bool)
        for v, number in zip(value, np.round(rate * value * size).astype(int), strict=True):
            nearest = np.argsort(np.where(weights > 0, np.abs(weights - v), np.inf))
            expected[nearest[:number]] = True
        slots, probabilities = draw(state, FULL, jnp.zeros(DRAWS), words)
        found = np.unique(slots)
        hits = expected[found].sum()
        assert hits >= 0.9 * max(found.size, expected.sum()), "counts within a key are not even"
        assert_distributed(slots, found)
        assert (np.asarray(probabilities) > 0).all()


def exact_sets(weights, words, csp_ratio):
    """Literal best-match searches: items by distance, then weight, then slot; bool [N]."""
    f = np.float32
    highest, present = weights.max(), weights > 0
    rate = min(f(csp_ratio) * f(N) / weights.sum(dtype=f), 1 / highest)
    edges = (np.arange(GROUPS, dtype=f) / f(GROUPS)) * highest
    value = (np.arange(GROUPS, dtype=f) + f(queries_of(words)[0])) / f(GROUPS) * highest
    group = np.searchsorted(edges, weights[present], side="right") - 1
    size = f(np.bincount(group, minlength=GROUPS))
    found = np.zeros(N, bool)
    for v, number in zip(value, np.round(rate * value * size).astype(int), strict=True):
        distance = np.where(present, np.abs(weights - v), np.inf)
        found[np.lexsort((np.arange(N), weights, distance))[:number]] = True
    return found & present


@pytest.mark.long
@pytest.mark.parametrize(("items", "least"), [(100, 0.6), (2_000, 0.85)])
def test_overlap_with_the_exact_form(items, least):
    """Jaccard indices of the sets for the same random numbers: rounding N_g changes small sets."""
    span, slots = replay.Span(jnp.int32(0), jnp.int32(items)), np.arange(items, dtype=np.int32)
    made = [
        replay.amper_k(*form, form="match")(replay.Ring(items), False) for form in ((), ("exact",))
    ]
    calls = [(jax.jit(each.assign), jax.jit(each.draw)) for each in made]
    rng, overlaps = np.random.default_rng(6), []
    for seed in range(30):
        weights, words = np.float32(rng.random(items)), words_of(seed, 40 * items)
        found = []
        for each, (assign, draw) in zip(made, calls, strict=True):
            state = assign(each.init(alpha=1.0, csp_ratio=0.15), slots, weights)
            drawn, _ = draw(state, span, jnp.zeros(40 * items), words)
            found.append(set(np.asarray(drawn).tolist()))
        overlaps.append(len(found[0] & found[1]) / len(found[0] | found[1]))
    assert np.mean(overlaps) > least


@pytest.mark.parametrize("ties", [False, True])
def test_exact_sets_are_those_of_best_match_searches(ties):
    """Most weights with ties are one of eight, whose sums are exact."""
    made = replay.amper_k("exact", groups=GROUPS, form="match")(replay.Ring(N), False)
    assign, draw = jax.jit(made.assign), jax.jit(made.draw)
    rng = np.random.default_rng(3)
    for seed, csp_ratio in enumerate((0.02, 0.15, 0.5, 1.0)):
        weights = np.ceil(rng.random(N) * (8 if ties else 2**16)) / np.float32(2**16)
        weights = np.float32(np.where(rng.random(N) < 0.1, 0, weights))
        state = made.init(alpha=1.0, csp_ratio=csp_ratio)
        state = assign(state, np.arange(N, dtype=np.int32), weights)
        words = words_of(seed)
        slots, probabilities = draw(state, FULL, jnp.zeros(DRAWS), words)
        expected = np.flatnonzero(exact_sets(weights, words, csp_ratio))
        np.testing.assert_array_equal(np.unique(slots), expected)
        assert_distributed(slots, expected)
        assert (np.asarray(probabilities) > 0).all()


@long_forms
def test_exact_probabilities(form):
    """Weighted shares of tenths of the items over 4,000 calls: within 3 % but for the lowest."""
    made = replay.amper_k("exact", groups=GROUPS, form=form)(replay.Ring(N), False)
    weights = np.sort(np.random.default_rng(4).random(N).astype(np.float32)) + np.float32(1e-3)
    state = made.init(alpha=1.0, csp_ratio=0.15)
    state = jax.jit(made.assign)(state, np.arange(N, dtype=np.int32), weights)
    draw = jax.jit(
        jax.vmap(
            lambda key: made.draw(state, FULL, jnp.zeros(64), jax.random.bits(key, (SEEDS, 64)))
        )
    )
    slots, p = map(np.asarray, draw(jax.random.split(jax.random.key(5), 4_000)))
    shares = np.histogram(slots, 10, (0, N), weights=1 / (N * p.astype(float)))[0] / slots.size
    np.testing.assert_allclose(shares[1:], 0.1, rtol=0.03)
    assert shares[0] < 0.1, "drawn less often than a point in 64 can say"


@long_forms
def test_fractions_of_a_weight(form):
    """lambda * V * C far below 1 in each group: sets are of few items or none, 0.6 on average."""
    weights = np.float32(np.where(np.arange(N) % 3 == 0, 0, 0.5 + UNIT[:N] / 2))
    made, draw, assign, _ = built(form)
    state = assign(made.init(alpha=1.0, csp_ratio=1e-3), np.arange(N, dtype=np.int32), weights)
    draws = [draw(state, FULL, jnp.zeros(64), words_of(seed, 64)) for seed in range(60)]
    empty = [np.allclose(p, 1 / N, rtol=1e-6) for _, p in draws]
    # Nearly Poisson: 60 * exp(-0.6) = 33, within 4.7 standard deviations of 3.9.
    assert 15 <= sum(empty) <= 51
    alone = [s for (s, _), e in zip(draws, empty, strict=True) if not e]
    assert min(len(set(np.asarray(s).tolist())) for s in alone) == 1
    assert all((weights[np.asarray(s)] > 0).all() for s, _ in draws)


@long_forms
def test_equal_weights_are_all_drawn(form):
    """As in training, where all that is new has the highest priority: of ties a part is nearest."""
    weights = np.full(N, 0.571, np.float32)
    weights[: N // 10] = 0.05 * UNIT[: N // 10]
    weights[0] = 1
    made, draw, assign, _ = built(form)
    state = assign(made.init(alpha=1.0, csp_ratio=0.15), np.arange(N, dtype=np.int32), weights)
    calls = [draw(state, FULL, jnp.zeros(64), words_of(seed, 64)) for seed in range(400)]
    slots, p = (np.stack(each) for each in zip(*calls, strict=True))
    tied = slots >= N // 10
    share = weights[N // 10 :].sum() / weights.sum()
    assert abs(tied.mean() - share) < 0.05
    drawn = np.bincount(slots[tied], minlength=N)[N // 10 :]
    assert (drawn > 0).all()
    assert drawn.max() < 3 * drawn.mean()
    # A call has about 0.15 of them in its set, not all and not always the same.
    sizes = [np.unique(row[row >= N // 10]).size for row in slots]
    assert np.mean(sizes) < 64
    assert np.mean(tied / (N * p)) == pytest.approx(0.9, rel=0.05)


@long_forms
def test_few_new_items_beside_many_small_ones_weigh_what_they_are(form):
    """The highest weight of a training is that of new items, and far above all others."""
    weights = np.float32(0.2 * UNIT[:N])
    new = np.arange(N) % (N // 8) == 0
    weights[new] = 1
    made, draw, assign, _ = built(form)
    state = assign(made.init(alpha=1.0, csp_ratio=0.15), np.arange(N, dtype=np.int32), weights)
    calls = [draw(state, FULL, jnp.zeros(64), words_of(seed, 64)) for seed in range(400)]
    slots, p = (np.stack(each).astype(float) for each in zip(*calls, strict=True))
    assert np.mean(new[slots.astype(int)] / (N * p)) == pytest.approx(new.mean(), rel=0.1)


@forms
def test_nothing_to_draw(form):
    made, draw, _, _ = built(form)
    slots, probabilities = draw(made.init(), FULL, jnp.zeros(64), words_of(0, 64))
    np.testing.assert_array_equal(probabilities, 0)
    assert ((np.asarray(slots) >= 0) & (np.asarray(slots) < N)).all()


@pytest.mark.long  # compiles many calls
def test_distribution_is_near_that_of_prioritised_replay():
    slots, p = large(replay.amper_k)
    assert divergence(slots) <= 0.01
    assert (p > 0).all()


@pytest.mark.long  # of many calls
@pytest.mark.parametrize("low", [1e-2, 1e-3, 1e-4, 1e-6])
def test_equal_weights_far_below_the_highest(low):
    """Errors that are nearly 0 after training, beside new items of the highest priority."""
    weights = np.full(N, low, np.float32)
    weights[: N // 10] = 1
    made, draw, assign, _ = built("match")
    state = assign(made.init(alpha=1.0, csp_ratio=0.15), np.arange(N, dtype=np.int32), weights)
    calls = [draw(state, FULL, jnp.zeros(64), words_of(seed, 64)) for seed in range(400)]
    slots, p = (np.stack(each).astype(float) for each in zip(*calls, strict=True))
    assert np.mean((slots >= N // 10) / (N * p)) == pytest.approx(0.9, rel=0.15)


@pytest.mark.long  # of the same draws
def test_importance_weights_make_means_nearly_unbiased():
    """Inclusion probabilities are known to 1 or 2 %."""
    slots, p = large(replay.amper_k)
    for values in (np.ones(LARGE), UNIT.astype(float), 1 - UNIT.astype(float)):
        ratio = values[slots] / (LARGE * p.astype(float))
        assert abs(ratio.mean() / values.mean() - 1) < 0.03
    assert abs(UNIT[slots].mean() - 2 / 3) < 0.05


@pytest.mark.slow
def test_over_seeds():
    memory = replay.make(np.float32(0), 256, 32, "amper_k")

    def run(alpha, csp_ratio, key):
        state = memory.init(alpha=alpha, csp_ratio=csp_ratio)
        state = memory.add(state, jnp.asarray(UNIT[:256]), UNIT[:256] + np.float32(0.01))
        drawn = memory.sample(state, key)
        state = memory.update(state, drawn, drawn.batch + 1)
        return state, drawn, memory.sample(state, jax.random.fold_in(key, 1))

    given = np.float32([0.3, 1.0]), np.float32([0.1, 0.5]), jax.random.split(jax.random.key(0), 2)
    many = jax.jit(jax.vmap(run))(*given)
    one = jax.jit(run)
    for k in range(2):
        alone = one(*(x[k] for x in given))
        jax.tree.map(
            lambda a, b, k=k: np.testing.assert_allclose(a, b[k], rtol=1e-4, atol=1e-7), alone, many
        )


@pytest.mark.parametrize(
    "options", [{"groups": 3}, {"groups": 300}, {"form": "tree"}, {"mode": "near"}]
)
def test_bad_options(options):
    with pytest.raises(ValueError, match="must be"):
        replay.amper_k(**options)
