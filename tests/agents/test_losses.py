"""The mathematics of one transition against NumPy, transition by transition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.agents import losses

A, N, B = 3, 7, 64
ATOMS = np.linspace(-2, 4, N).astype(np.float32)


@pytest.fixture(scope="module")
def batch():
    """Random transitions; some ended, some with ties between actions."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    data = {
        "a_tm1": rng.integers(0, A, B).astype(np.int32),
        "r_t": 3 * draw(B),
        "discount_t": np.where(rng.random(B) < 0.3, 0, 0.9).astype(np.float32),
        "selector": draw(B, A),
        "values_tm1": draw(B, A),
        "values_t": draw(B, A),
        "atoms_tm1": 2 * draw(B, A, N),
        "atoms_t": 2 * draw(B, A, N),
    }
    data["selector"][:8, 1] = data["selector"][:8, 2] = 9  # the first of those that tie is taken
    return data


def softmax(logits):
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


def projected(places, masses):
    """Algorithm 1 of Bellemare et al., one mass after another."""
    spacing = float(ATOMS[1]) - float(ATOMS[0])
    result = np.zeros(N)
    for place, mass in zip(places, masses, strict=True):
        b = (min(max(place, ATOMS[0]), ATOMS[-1]) - ATOMS[0]) / spacing
        low, high = int(np.floor(b)), int(np.ceil(b))
        if low == high:
            result[low] += mass
        else:
            result[low] += mass * (high - b)
            result[high] += mass * (b - low)
    return result


def test_q_learning_is_target_less_value(batch):
    names = ("values_tm1", "a_tm1", "r_t", "discount_t", "values_t", "selector")
    given = [batch[name] for name in names]
    error = jax.vmap(losses.q_learning)(*given)
    for n, (q_tm1, a, r, discount, q_t, selector) in enumerate(zip(*given, strict=True)):
        expected = r + discount * q_t[list(selector).index(max(selector))] - q_tm1[a]
        np.testing.assert_allclose(error[n], expected, rtol=1e-5, atol=1e-6)
    for name, gradient in _gradients(lambda *x: losses.q_learning(*x), given, names).items():
        own = -np.eye(A)[batch["a_tm1"]] if name == "values_tm1" else 0
        np.testing.assert_array_equal(gradient, own + np.zeros_like(batch[name]))


def _gradients(function, given, names):
    """Of each transition's result with respect to each of its floating arguments."""
    floats = [n for n, each in enumerate(given) if each.dtype == np.float32]
    found = jax.jit(jax.vmap(jax.grad(function, argnums=floats)))(*given)
    return {names[n]: np.asarray(each) for n, each in zip(floats, found, strict=True)}


@pytest.mark.parametrize("delta", [0.5, 1.0, 2.0])
def test_huber_is_a_parabola_with_straight_ends(delta):
    error = np.float32([-5, -delta - 0.1, -delta, -0.3, 0, 0.3, delta, delta + 0.1, 5])
    size = np.abs(error)
    expected = np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))
    np.testing.assert_allclose(losses.huber(error, delta), expected, rtol=1e-6)
    slope = jax.vmap(jax.grad(lambda e: losses.huber(e, delta)))(error)
    np.testing.assert_allclose(slope, np.clip(error, -delta, delta), rtol=1e-6)


def test_squared_is_half_the_square():
    error = np.float32([-2, 0, 0.5])
    np.testing.assert_array_equal(losses.squared(error), error**2 / 2)
    np.testing.assert_array_equal(jax.vmap(jax.grad(losses.squared))(error), error)


project = jax.jit(lambda position, masses: losses.project(position, masses, N))


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=6, max_size=6),
    st.randoms(use_true_random=False),
)
def test_projection_keeps_mass_and_inside_the_support_the_mean(places, random):
    masses = np.float32([random.random() for _ in places])
    position = np.float32((np.float64(places) - ATOMS[0]) / (ATOMS[1] - ATOMS[0]))
    result = np.asarray(project(position, masses))
    np.testing.assert_allclose(result, projected(np.float32(places), masses), atol=1e-4)
    np.testing.assert_allclose(result.sum(), masses.sum(), rtol=1e-5, atol=1e-6)
    assert (result >= 0).all()
    inside = np.clip(places, ATOMS[0], ATOMS[-1])
    np.testing.assert_allclose(result @ ATOMS, inside @ masses, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (3.0, [0, 0, 0, 1, 0, 0, 0]),  # on an atom: all to it
        (0.0, [1, 0, 0, 0, 0, 0, 0]),
        (6.0, [0, 0, 0, 0, 0, 0, 1]),
        (2.25, [0, 0, 0.75, 0.25, 0, 0, 0]),
        (-50.0, [1, 0, 0, 0, 0, 0, 0]),  # outside: to the nearest
        (50.0, [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_projection_of_one_mass(position, expected):
    result = losses.project(np.float32([position]), np.float32([1]), N)
    np.testing.assert_array_equal(result, np.float32(expected))


CATEGORICAL = ("atoms_tm1", "a_tm1", "r_t", "discount_t", "atoms_t", "selector")


def test_categorical_is_the_divergence_from_the_projected_target(batch):
    given = [batch[name] for name in CATEGORICAL]

    def function(*x):
        return losses.categorical_q_learning(jnp.asarray(ATOMS), *x)

    divergence = np.asarray(jax.jit(jax.vmap(function))(*given))
    gradients = _gradients(function, given, CATEGORICAL)
    for n, (tm1, a, r, discount, t, selector) in enumerate(zip(*given, strict=True)):
        chosen = softmax(t[list(selector).index(max(selector))])
        target = projected(r + discount * ATOMS.astype(np.float64), chosen)
        predicted = softmax(tm1[a])
        some = target > 0
        expected = np.sum(target[some] * np.log(target[some] / predicted[some]))
        np.testing.assert_allclose(divergence[n], expected, rtol=1e-4, atol=1e-5)
        slope = np.zeros((A, N))
        slope[a] = predicted - target  # of the cross-entropy of a softmax
        np.testing.assert_allclose(gradients["atoms_tm1"][n], slope, atol=1e-5)
    assert (divergence >= 0).all()
    for name in set(gradients) - {"atoms_tm1"}:
        assert not gradients[name].any(), name


def test_categorical_of_an_ended_episode_is_the_reward_alone(batch):
    logits = np.zeros((A, N), np.float32)
    reward, discount = np.float32(1), np.float32(0)
    divergence = jax.jit(losses.categorical_q_learning)
    found = [
        divergence(ATOMS, logits, 0, reward, discount, other, batch["selector"][0])
        for other in batch["atoms_t"][:2]
    ]
    np.testing.assert_allclose(found, np.log(N), rtol=1e-6)  # one atom from an even distribution


@pytest.mark.parametrize(("low", "high"), [(-10, 10), (100, 101), (9990, 10010)])
def test_categorical_is_zero_where_a_sure_return_is_learned(low, high):
    """Wherever the atoms are: of far ones, neighbours differ in few digits."""
    atoms = np.linspace(low, high, 51, dtype=np.float32)
    logits = np.full((1, 51), -60, np.float32)
    logits[0, 49] = 0
    target = (np.float32(0), np.float32(1), logits, np.zeros(1, np.float32))
    loss = losses.categorical_q_learning(atoms, logits, 0, *target)
    assert abs(float(loss)) < 1e-5


def test_categorical_is_zero_where_a_random_return_is_learned():
    logits = np.float32(np.random.default_rng(1).normal(size=(1, N)))
    found, slope = jax.jit(jax.value_and_grad(losses.categorical_q_learning, argnums=1))(
        jnp.asarray(ATOMS), logits, 0, np.float32(0), np.float32(1), logits, np.zeros(1, np.float32)
    )
    np.testing.assert_allclose(found, 0, atol=1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-6)


@pytest.mark.parametrize(("num", "targets", "delta"), [(N, N, 1.0), (N, 3, 0.5), (1, 5, 2.0)])
def test_quantile_regression_pair_by_pair(num, targets, delta):
    rng = np.random.default_rng(num)
    quantiles = rng.normal(size=num).astype(np.float32)
    aims = np.concatenate([rng.normal(size=targets - 1), quantiles[:1]]).astype(np.float32)
    loss, slope = 0.0, np.zeros(num)
    for i, quantile in enumerate(quantiles.astype(np.float64)):
        tau = (2 * i + 1) / (2 * num)
        for aim in aims:
            u = aim - quantile
            share = abs(tau - (u < 0))
            cost = u**2 / 2 if abs(u) <= delta else delta * (abs(u) - delta / 2)
            loss += share * cost / targets
            slope[i] -= share * np.clip(u, -delta, delta) / targets
    regression = jax.value_and_grad(losses.quantile_regression, argnums=(0, 1))
    found, (own, others) = jax.jit(regression, static_argnums=2)(quantiles, aims, delta)
    np.testing.assert_allclose(found, loss, rtol=1e-5)
    np.testing.assert_allclose(own, slope, rtol=1e-5, atol=1e-6)
    assert not np.asarray(others).any()


def test_quantile_regression_finds_the_quantiles():
    """Of the numbers 0 to 99: the minimum of the loss, by descent, is at 12.5, 37.5, ..."""
    aims = np.arange(100, dtype=np.float32)

    @jax.jit
    def descend(quantiles):
        slope = jax.grad(losses.quantile_regression)
        return jax.lax.fori_loop(0, 4000, lambda _, q: q - slope(q, aims), quantiles)

    found = descend(jnp.zeros(4, jnp.float32))
    np.testing.assert_allclose(found, np.array([12.5, 37.5, 62.5, 87.5]) - 0.5, atol=0.6)


def test_quantile_q_learning_moves_the_quantiles_of_the_action(batch):
    given = [batch[name] for name in CATEGORICAL]
    loss, error = jax.jit(jax.vmap(losses.quantile_q_learning))(*given)
    regression = jax.jit(jax.value_and_grad(losses.quantile_regression))
    gradients = _gradients(lambda *x: sum(losses.quantile_q_learning(*x)), given, CATEGORICAL)
    for n, (tm1, a, r, discount, t, selector) in enumerate(zip(*given, strict=True)):
        targets = np.float32(r + discount * t[list(selector).index(max(selector))])
        slope = np.zeros((A, N), np.float32)
        cost, slope[a] = regression(tm1[a], targets)
        np.testing.assert_allclose(loss[n], cost, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(error[n], targets.mean() - tm1[a].mean(), atol=1e-5)
        np.testing.assert_allclose(gradients["atoms_tm1"][n], slope, atol=1e-6)
    for name in set(gradients) - {"atoms_tm1"}:
        assert not gradients[name].any(), name


@pytest.mark.parametrize("function", [losses.q_learning, losses.quantile_q_learning])
def test_a_batch_is_refused(batch, function):
    values = batch["values_tm1"] if function is losses.q_learning else batch["atoms_tm1"]
    with pytest.raises(AssertionError, match="rank compatibility"):
        function(
            values, batch["a_tm1"], batch["r_t"], batch["discount_t"], values, batch["selector"]
        )
