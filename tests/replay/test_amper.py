"""AMPER-fr: candidate sets, draws from them, their probabilities.

The model of a call is in NumPy: representatives, queries, and what a ternary CAM of plain cells
finds. Keys of random numbers are fixed: a right sampler passes always or never, and had they not
been, each statistical test would refuse it with a probability of at most 1e-6.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from chi_square import assert_distributed
from tcam import Tcam

from accel_rl import replay
from accel_rl.replay import inclusion
from accel_rl.replay.amper import query_words
from accel_rl.words import SEEDS

MODES = ("exact", "prefix", "dithered")
FORMS = ("rejection", "match")
LAWS = {"exact": inclusion.ball, "prefix": inclusion.block, "dithered": inclusion.dithered_block}
N, GROUPS, RATIO, DRAWS = 600, 20, 0.15, 1 << 15
FULL = replay.Span(jnp.int32(0), jnp.int32(N))
SLOW, LONG = pytest.mark.slow, pytest.mark.long
modes = pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=LONG if mode == "dithered" else SLOW) for mode in MODES]
)


@functools.cache
def sampler(mode, form, capacity=N, groups=GROUPS, key_bits=32):
    """A sampler of so many slots, and its functions compiled."""
    made = replay.amper_fr(mode, groups=groups, key_bits=key_bits, form=form)
    made = made(replay.Ring(capacity), False)
    return made, jax.jit(made.draw), jax.jit(made.assign)


def filled(mode, form, weights, csp_ratio=RATIO, **options):
    made, _, assign = sampler(mode, form, weights.size, **options)
    state = made.init(alpha=1.0, csp_ratio=csp_ratio)
    return assign(state, np.arange(weights.size, dtype=np.int32), np.float32(weights))


def words_of(seed, num=DRAWS):
    return jax.random.bits(jax.random.key(seed), (SEEDS, num))


def queries_of(words, groups=GROUPS):
    """The random numbers of a call, in [0, 1): for representatives, and for dithering."""
    bits = np.asarray(query_words(words, groups))
    return (bits[:, :groups] >> 8) / 2.0**24


def keys_of(fractions, bits):
    """Fixed-point keys, the nearest."""
    top = 2**bits - 1
    return np.minimum(np.floor(np.float64(fractions) * top + 0.5), top).astype(f"u{bits // 8}")


def reach_of(weights, *, csp_ratio=RATIO, size=None, groups=GROUPS, **_):
    """The radius over the value."""
    weights = np.float64(np.float32(weights))
    mean = weights.sum() / (size or weights.size)
    return min(csp_ratio * (1 + 1 / groups) * weights.max() / (2 * mean), 1) / groups


def hashed(words):
    """The finaliser of MurmurHash3, of 32 bits."""
    words = (words ^ (words >> 16)) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> 13)) * np.uint32(0xC2B2AE35)
    return words ^ (words >> 16)


def fractions_of(mode, weights, groups=GROUPS, **options):
    """Weights of slots 0, 1, ... over the end of the groups' range, moved apart."""
    weights = np.float32(weights)
    slots = np.arange(weights.size, dtype=np.uint32)
    words = hashed(weights.view(np.uint32) ^ (slots * np.uint32(0x9E3779B1)))
    offset = np.float32(2 * (words >> 8) / 2.0**24 - 1)
    fractions = weights / weights.max()
    fractions = fractions + offset * np.minimum(fractions, np.float32(1 / groups))
    end = np.float32(1 + 1 / groups)
    if mode == "exact":
        end /= np.float32(1) - np.float32(reach_of(weights, groups=groups, **options))
    return fractions / end


def search_of(mode, weights, words, *, groups=GROUPS, bits=32, **options):
    """Keys of representatives, and the radius or the number of don't-care bits of each."""
    random = queries_of(words, groups)
    value = np.float32((np.arange(groups) + random[0]) / groups)
    center = keys_of(value, bits)
    ratio = reach_of(weights, groups=groups, **options)
    reach = ratio * np.float64(value) * 2.0**bits  # radius in keys
    if mode == "exact":
        return center, np.floor(reach).astype(np.int64)
    if mode == "prefix":  # from the highest 1 of the radius downwards
        low = np.floor(np.log2(reach)) + 1
    else:  # a width of twice the radius on average
        low = np.floor(np.log2(2 * reach))
        low += random[1] < 2 * reach / 2**low - 1
    return center, np.clip(low, 0, bits).astype(int)


def candidates(mode, weights, words, **options):
    """The candidate set of one call, as a CAM of plain cells finds it, bool [N]."""
    bits = options.get("bits", 32)
    cam = Tcam(keys_of(fractions_of(mode, weights, **options), bits), weights > 0)
    center, second = search_of(mode, weights, words, **options)
    if mode == "exact":
        return cam.any_radius(center, second)
    return cam.any_match(center, [2 ** int(low) - 1 for low in second])


def priorities(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return np.float32(np.where(rng.random(n) < 0.1, 0, rng.random(n)))


# --- one call


pairs = pytest.mark.parametrize(
    ("mode", "form"),
    [
        pytest.param(mode, form, marks=() if (mode, form) == ("dithered", "rejection") else SLOW)
        for mode in MODES
        for form in FORMS
    ],
)


@pairs
def test_draws_are_uniform_over_what_the_cam_finds(mode, form):
    """Both forms, for the same words, from the same set."""
    weights = priorities()
    state = filled(mode, form, weights)
    _, draw, _ = sampler(mode, form)
    for seed in range(3):
        words = words_of(seed)
        found = np.flatnonzero(candidates(mode, weights, words))
        slots, probabilities = draw(state, FULL, jnp.zeros(DRAWS), words)
        assert slots.dtype == jnp.int32
        assert probabilities.dtype == jnp.float32
        assert found.size > 10
        assert_distributed(slots, found)
        included = LAWS[mode](
            fractions_of(mode, weights)[slots], np.float32(reach_of(weights)), GROUPS
        )
        # Tries are counted up to the last draw: the set's size is exact for "match" only.
        np.testing.assert_allclose(
            probabilities,
            np.asarray(included) / found.size,
            rtol=1e-5 if form == "match" else 0.05,
        )


@pytest.mark.parametrize(
    ("mode", "groups", "bits"),
    [
        ("exact", 4, 16),
        pytest.param("prefix", 256, 16, marks=SLOW),
        pytest.param("dithered", 7, 16, marks=SLOW),
    ],
)
def test_other_groups_and_keys(mode, groups, bits):
    weights = priorities(1)
    state = filled(mode, "match", weights, groups=groups, key_bits=bits)
    _, draw, _ = sampler(mode, "match", N, groups, bits)
    for seed in range(5):
        words = words_of(seed)
        found = candidates(mode, weights, words, groups=groups, bits=bits)
        slots, _ = draw(state, FULL, jnp.zeros(DRAWS), words)
        if found.any():
            np.testing.assert_array_equal(np.unique(slots), np.flatnonzero(found))


@pytest.mark.parametrize("form", quick.only(["rejection"], FORMS))
def test_a_span_around_the_end(form):
    """Slots outside have weight 0; the set's ratio is to the items that there are."""
    weights = priorities(2)
    span = replay.Span(jnp.int32(500), jnp.int32(300))
    inside = (500 + np.arange(300)) % N
    weights[np.setdiff1d(np.arange(N), inside)] = 0
    state = filled("dithered", form, weights)
    _, draw, _ = sampler("dithered", form)
    words = words_of(3)
    found = np.flatnonzero(candidates("dithered", weights, words, size=300))
    slots, _ = draw(state, span, jnp.zeros(DRAWS), words)
    assert_distributed(slots, found)


@modes
def test_heavy_tails_make_the_set_smaller(mode):
    """Radius over value is at most 1 / groups, whatever is asked for."""
    weights = np.random.default_rng(4).exponential(size=N)
    weights[5] = 100  # mean over highest: 0.01, where 0.075 is needed
    state = filled(mode, "match", weights)
    _, draw, _ = sampler(mode, "match")
    some = 0
    for seed in range(40):
        words = words_of(seed, 4096)
        found = candidates(mode, weights, words)
        assert found.sum() < N  # the ball about the first value at most
        slots, probabilities = draw(state, FULL, jnp.zeros(4096), words)
        if found.any():
            some += 1
            assert found[np.asarray(slots)].all()
        else:
            np.testing.assert_allclose(probabilities, 1 / N, rtol=1e-6)
    assert some > 0


@pytest.mark.long  # the test above meets empty sets, too
@pairs
def test_an_empty_set_gives_uniform_draws(mode, form):
    """Three items: the values of most calls are near none."""
    weights = np.float32([1.5, 0, 0.7, 0.7])
    state = filled(mode, form, weights, csp_ratio=0.02)
    _, draw, _ = sampler(mode, form, 4)
    empty = [
        s for s in range(20) if not candidates(mode, weights, words_of(s), csp_ratio=0.02).any()
    ]
    assert empty
    span = replay.Span(jnp.int32(0), jnp.int32(4))
    slots, probabilities = draw(state, span, jnp.zeros(DRAWS), words_of(empty[0]))
    assert_distributed(slots, np.flatnonzero(weights > 0))
    np.testing.assert_allclose(probabilities, 1 / 4, rtol=1e-6)


@pytest.mark.parametrize("form", quick.only(["match"], FORMS))
def test_nothing_to_draw(form):
    made, draw, _ = sampler("dithered", form)
    for size in (0, 100):
        slots, probabilities = draw(
            made.init(), replay.Span(jnp.int32(7), jnp.int32(size)), jnp.zeros(8), words_of(0, 8)
        )
        np.testing.assert_array_equal(probabilities, 0)
        assert ((np.asarray(slots) >= 0) & (np.asarray(slots) < N)).all()


# --- many calls

LARGE, CALLS, BATCH = 10_000, 3000, 64
UNIT = np.float32(np.random.default_rng(9).random(LARGE))


@functools.cache
def large(make, *args, n=LARGE, calls=CALLS, csp_ratio=0.3, seed=0):
    """Slots and probabilities [calls, batch] of a memory of U[0, 1] priorities."""
    memory = replay.make(np.float32(0), n, BATCH, make(*args))
    hyperparameters = {} if make is replay.uniform else {"alpha": 1.0, "csp_ratio": csp_ratio}

    @jax.jit
    def run(keys):
        state = memory.init(**hyperparameters)
        state = memory.add(state, jnp.asarray(UNIT[:n]), UNIT[:n])

        def step(carry, key):
            drawn = memory.sample(state, key)
            return carry, (drawn.indices, drawn.probabilities)

        return jax.lax.scan(step, 0, keys)[1]

    return tuple(map(np.asarray, run(jax.random.split(jax.random.key(seed), calls))))


def divergence(slots, n=LARGE):
    """KL of the drawn priorities from those that PER draws, over 50 bins."""
    exact = np.histogram(UNIT[:n], 50, (0, 1), weights=UNIT[:n])[0]
    drawn = np.histogram(UNIT[slots.ravel()], 50, (0, 1))[0]
    exact, drawn = exact / exact.sum(), drawn / drawn.sum()
    return float((exact * np.log(exact / np.maximum(drawn, 1e-9))).sum())


def fr(mode):
    return large(replay.amper_fr, mode)


@pytest.mark.long  # compiles many calls
def test_uniform_replay_is_far_from_prioritised():
    """The measure itself: log 2 - 1 / 2 for U[0, 1]."""
    assert abs(divergence(large(replay.uniform)[0]) - (np.log(2) - 0.5)) < 0.01


@pytest.mark.parametrize(
    ("mode", "most"),
    [
        pytest.param("exact", 3e-3, marks=SLOW),
        pytest.param("dithered", 3e-3, marks=LONG),
        pytest.param("prefix", 0.025, marks=SLOW),
    ],
)
def test_distribution_is_near_that_of_prioritised_replay(mode, most):
    assert divergence(fr(mode)[0]) <= most


@pytest.mark.parametrize("mode", ["exact", pytest.param("dithered", marks=SLOW)])
@pytest.mark.parametrize(
    ("new", "priority", "csp_ratio"), [(60, 40, 0.02), (3_000, 1, RATIO), (5_400, 1, RATIO)]
)
def test_what_is_new_is_drawn_in_proportion(mode, new, priority, csp_ratio):
    """Items of the highest priority: a few far above the rest, half of all, nearly all.

    lambda' is below a half. Each call has some of them.
    """
    weights = 0.3 * np.abs(np.random.default_rng(5).normal(size=6_000)).astype(np.float32)
    weights[:new] = priority
    _, draw, _ = sampler(mode, "match", weights.size)
    state = filled(mode, "match", weights, csp_ratio=csp_ratio)
    words = jax.random.bits(jax.random.key(6), (500, SEEDS, BATCH))
    span = replay.Span(jnp.int32(0), jnp.int32(weights.size))
    slots, _ = jax.lax.map(lambda each: draw(state, span, jnp.zeros(BATCH), each), words)
    drawn = np.asarray(slots) < new
    part = np.mean(drawn) / (weights[:new].sum() / weights.sum())
    assert 0.9 < part < 1.1
    assert drawn.any(axis=1).all()


@modes
def test_importance_weights_make_means_nearly_unbiased(mode):
    """Within 2 %: the set's size is an estimate, and groups share values within a call.

    Without the weights it is the mean under prioritised draws, 2/3 and not 1/2.
    """
    slots, p = fr(mode)
    for values in (np.ones(LARGE), UNIT.astype(float), 1 - UNIT.astype(float)):
        ratio = values[slots] / (LARGE * p.astype(float))
        assert abs(ratio.mean() / values.mean() - 1) < 0.02
    assert abs(UNIT[slots].mean() - 2 / 3) < 0.05


def match_form():
    return replay.amper_fr(form="match")


@pytest.mark.slow
def test_importance_weights_of_the_match_form():
    slots, p = large(match_form, n=2000, calls=2000)
    values = UNIT[:2000].astype(float)
    ratio = values[slots] / (2000 * p.astype(float))
    assert abs(ratio.mean() / values.mean() - 1) < 0.03


@SLOW
@pytest.mark.parametrize(
    ("mode", "low", "high"), [("exact", 0.9, 1.05), ("dithered", 0.9, 1.05), ("prefix", 0.6, 0.9)]
)
def test_the_set_has_the_size_that_was_asked_for(mode, low, high):
    """Less what neighbours' sets share, and for "prefix" its narrower blocks."""
    found = []
    weights = UNIT[:4000]
    for seed in range(150):
        center, second = search_of(mode, weights, words_of(seed, 2))
        keys = keys_of(fractions_of(mode, weights), 32).astype(np.int64)[:, None]
        center = center.astype(np.int64)
        if mode == "exact":
            hits = np.abs(keys - center) <= second
        else:
            hits = keys >> second == center >> second
        found.append(hits.any(axis=1).mean())
    assert low * RATIO < np.mean(found) < high * RATIO
    # And so the memory's own sets: a probability is how often the item is included over the size.
    slots, p = large(replay.amper_fr, mode, csp_ratio=RATIO, calls=500)
    fractions = fractions_of(mode, UNIT)[slots.ravel()]
    included = np.asarray(LAWS[mode](fractions, np.float32(reach_of(UNIT)), GROUPS))
    sizes = included / p.ravel()
    assert low * RATIO < sizes.mean() / LARGE < high * RATIO


# --- as part of a memory


@modes
def test_new_items_can_be_learned_from(mode):
    """They get the highest weight, and so a fraction of 1: no call must give them a chance of 0."""
    memory = replay.make(np.float32(0), 64, 32, replay.amper_fr(mode))
    state = memory.add(memory.init(), jnp.zeros(64))

    def probabilities(key):
        return memory.sample(state, key).probabilities

    keys = jax.random.split(jax.random.key(0), 300)
    assert np.all(jax.jit(lambda keys: jax.lax.map(probabilities, keys))(keys) > 0)


@SLOW
def test_hyperparameters_are_leaves_that_vmap_maps():
    memory = replay.make(np.float32(0), 256, 32, "amper_fr")

    def run(alpha, csp_ratio, key):
        state = memory.init(alpha=alpha, csp_ratio=csp_ratio)
        state = memory.add(state, jnp.asarray(UNIT[:256]), UNIT[:256] + np.float32(0.01))
        drawn = memory.sample(state, key)
        state = memory.update(state, drawn, drawn.batch + 1)
        return drawn, memory.sample(state, jax.random.fold_in(key, 1))

    given = np.float32([0.3, 0.6, 1.0]), np.float32([0.1, 0.2, 0.5])
    keys = jax.random.split(jax.random.key(0), 3)
    many = jax.jit(jax.vmap(run))(*given, keys)
    one = jax.jit(run)
    for k in range(3):
        alone = one(given[0][k], given[1][k], keys[k])
        jax.tree.map(
            lambda a, b, k=k: np.testing.assert_allclose(a, b[k], rtol=1e-4, atol=1e-7), alone, many
        )
    state = memory.init(alpha=0.3, csp_ratio=0.2)
    assert {float(state.index.sampler.alpha), float(state.index.sampler.csp_ratio)} == {
        float(np.float32(0.3)),
        float(np.float32(0.2)),
    }


@pytest.mark.long  # the conformance test asks it of fewer draws
@pairs
def test_items_of_priority_zero_are_never_drawn(mode, form):
    memory = replay.make(np.float32(0), 200, 64, replay.amper_fr(mode, form=form))
    given = np.where(np.arange(200) % 5 == 0, UNIT[:200], 0).astype(np.float32)
    state = memory.add(memory.init(csp_ratio=0.05), jnp.zeros(200), given)

    def drawn(key):
        return memory.sample(state, key).indices

    slots = jax.jit(lambda keys: jax.lax.map(drawn, keys))(jax.random.split(jax.random.key(3), 200))
    assert set(np.unique(slots)) <= set(range(0, 200, 5))
    assert len(np.unique(slots)) > 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fuzzy"}, "mode must be one of"),
        ({"groups": 3}, "groups must be from 4 to 256, got 3"),
        ({"groups": 257}, "groups must be from 4 to 256, got 257"),
        ({"form": "tree"}, "form must be one of"),
        ({"key_bits": 12}, "12"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        replay.amper_fr(**options)


@pytest.mark.parametrize("name", ["amper_fr", "amper_k"])
@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        ({"csp_ratio": 0.0}, "csp_ratio must be above 0 and at most 1"),
        ({"csp_ratio": 1.1}, "csp_ratio must be above 0 and at most 1"),
        ({"csp_ratio": np.nan}, "csp_ratio must be above 0 and at most 1"),
        ({"alpha": -0.1}, "alpha must be finite and at least 0"),
        ({"alpha": np.inf}, "alpha must be finite and at least 0"),
    ],
)
def test_bad_hyperparameters(name, hyperparameters, message):
    memory = replay.make(np.float32(0), 16, 4, name)
    with pytest.raises(ValueError, match=message):
        memory.init(**hyperparameters)
