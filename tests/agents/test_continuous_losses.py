"""Losses of agents with continuous actions against NumPy, SciPy's densities and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from accel_rl.agents import losses

RNG = np.random.default_rng(0)


def batched(loss, axes=0):
    return jax.jit(jax.vmap(loss, axes))


def floats(*values):
    return [jnp.asarray(value, jnp.float32) for value in values]


@pytest.mark.parametrize("num", [1, 2, 3])
def test_clipped_double_q_is_numpys(num):
    q_tm1, q_t = RNG.normal(size=(2, 50, num))
    reward, discount = RNG.normal(size=50), RNG.uniform(0, 1, 50)
    got = batched(losses.clipped_double_q)(*floats(q_tm1, reward, discount, q_t))
    want = (reward + discount * q_t.min(axis=1))[:, None] - q_tm1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_errors_have_gradients_with_respect_to_the_learning_values_only():
    args = floats([1.0, 2.0], 0.5, 0.9, [3.0, 1.0])
    gradients = jax.jit(jax.jacobian(losses.clipped_double_q, (0, 1, 2, 3)))(*args)
    np.testing.assert_array_equal(gradients[0], -np.eye(2))
    for other in gradients[1:]:
        assert not np.any(other)
    gradients = jax.jit(jax.jacobian(losses.soft_q, (0, 1, 2, 3, 4, 5)))(*args, *floats(-0.3, 0.2))
    np.testing.assert_array_equal(gradients[0], -np.eye(2))
    for other in gradients[1:]:
        assert not np.any(other)


def test_smoothed_is_numpys():
    action, noise = RNG.uniform(-1, 1, (200, 3)), RNG.normal(size=(200, 3))
    got = batched(losses.smoothed, (0, 0, None))(*floats(action, noise, 0.5))
    want = np.clip(action + np.clip(noise, -0.5, 0.5), -1, 1)
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert np.abs(got).max() == 1, "no action met its bound"


def test_worst_is_the_largest_error_with_its_sign():
    got = batched(losses.worst)(*floats([[1.0, -2.0], [3.0, 2.0], [-1.0, 0.5]]))
    np.testing.assert_array_equal(got, [-2, 3, -1])


def test_deterministic_policy_gradient_is_the_chain_rule():
    # Q(s, a) = -|a - c|^2, policy a = W s: the gradient of -Q is 2 (W s - c) s'
    w, s, c = RNG.normal(size=(2, 3)), RNG.normal(size=3), RNG.normal(size=2)

    def loss(w, s, c):
        return losses.deterministic_policy(-jnp.sum(jnp.square(w @ s - c)))

    got = jax.jit(jax.grad(loss))(*floats(w, s, c))
    np.testing.assert_allclose(got, 2 * np.outer(w @ s - c, s), rtol=1e-5, atol=1e-5)


def density(mean, log_std, number):
    """The logarithm of the density of tanh(number), in float64 without tanh's inverse."""
    normal = stats.norm.logpdf(number, mean, np.exp(log_std))
    size = np.abs(number)
    # 1 - tanh(x)^2 = 1 / cosh(x)^2, and cosh(x) = exp(|x|) (1 + exp(-2 |x|)) / 2
    log_cosh = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return np.sum(normal + 2 * log_cosh, axis=-1)


@pytest.mark.parametrize("center", [0, 3, -10, 60])
def test_squashed_gaussian_has_the_density_of_scipy(center):
    mean = RNG.normal(center, 1, (300, 2)).astype(np.float32)
    log_std = RNG.uniform(-5, 1, (300, 2)).astype(np.float32)
    noise = RNG.normal(size=(300, 2)).astype(np.float32)
    action, log_prob = batched(losses.squashed_gaussian)(mean, log_std, noise)
    number = (mean + np.exp(log_std) * noise).astype(np.float64)
    # The noise that the rounded number stands for, so that both sides see the same.
    np.testing.assert_allclose(action, np.tanh(number), atol=1e-6)
    want = density(number - np.exp(log_std.astype(np.float64)) * noise, log_std, number)
    np.testing.assert_allclose(log_prob, want, rtol=2e-6, atol=2e-4)


def test_squashed_gaussian_agrees_with_the_change_of_variables():
    # In the middle of the range the textbook's form is exact enough: no tricks on this side.
    mean, log_std, noise = 0.2, -0.5, RNG.normal(size=(100, 1))
    args = (jnp.full((100, 1), x, jnp.float32) for x in (mean, log_std))
    action, log_prob = batched(losses.squashed_gaussian)(*args, *floats(noise))
    action = np.asarray(action, np.float64)[:, 0]
    normal = stats.norm.logpdf(np.arctanh(action), mean, np.exp(log_std))
    np.testing.assert_allclose(log_prob, normal - np.log(1 - action**2), rtol=1e-4, atol=1e-4)


def test_densities_integrate_to_one():
    mean, log_std = 0.4, -0.2
    number = np.linspace(-9, 9, 4001)
    noise = (number - mean) / np.exp(log_std)
    args = (jnp.full((number.size, 1), x, jnp.float32) for x in (mean, log_std))
    _, log_prob = batched(losses.squashed_gaussian)(*args, *floats(noise[:, None]))
    # over actions a = tanh(x), da = (1 - tanh(x)^2) dx
    total = integrate.trapezoid(np.exp(np.float64(log_prob)) / np.cosh(number) ** 2, number)
    assert total == pytest.approx(1, abs=1e-5)


def test_log_probability_and_its_gradient_are_finite_where_actions_round_to_one():
    def log_prob(mean, log_std):
        action, value = losses.squashed_gaussian(mean, log_std, jnp.ones(1))
        return value, action

    slopes_of = jax.jit(jax.value_and_grad(log_prob, (0, 1), has_aux=True))
    for center in (-1e3, -25.0, 25.0, 1e3):
        (value, action), slopes = slopes_of(*floats([center], [0.5]))
        assert action[0] == np.sign(center)
        # far out the density of a falls as 2 |x|: one more in x is two more in its logarithm
        np.testing.assert_allclose(slopes[0], 2 * np.sign(center), rtol=1e-6)
        assert np.isfinite(value)
        assert np.isfinite(slopes[1]).all()


def test_soft_targets_are_numpys():
    q_tm1, q_t = RNG.normal(size=(2, 50, 2))
    reward, log_prob = RNG.normal(size=(2, 50))
    discount = RNG.uniform(0, 1, 50)
    got = batched(losses.soft_q, (0, 0, 0, 0, 0, None))(
        *floats(q_tm1, reward, discount, q_t, log_prob, 0.3)
    )
    want = (reward + discount * (q_t.min(axis=1) - 0.3 * log_prob))[:, None] - q_tm1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_soft_policy_is_numpys():
    args = floats([1.5, 0.5], -0.7, 0.3)
    np.testing.assert_allclose(losses.soft_policy(*args), 0.3 * -0.7 - 0.5, rtol=1e-6)
    gradients = jax.jit(jax.grad(losses.soft_policy, (0, 1, 2)))(*args)
    np.testing.assert_allclose(gradients[0], [0, -1])
    np.testing.assert_allclose(gradients[1:], [0.3, 0], rtol=1e-6)


def test_temperature_rises_while_entropy_is_too_low():
    args = floats(np.log(0.2), 1.5, -1.0)  # an entropy of -1.5, below its target of -1
    assert losses.temperature_loss(*args) == pytest.approx(-0.2 * 0.5)
    gradients = jax.jit(jax.grad(losses.temperature_loss, (0, 1, 2)))(*args)
    np.testing.assert_allclose(gradients, [-0.1, 0, 0], rtol=1e-6)  # descent raises it


def test_wrong_ranks_are_refused():
    for call in (
        lambda: losses.clipped_double_q(jnp.zeros(2), jnp.zeros(2), jnp.zeros(2), jnp.zeros(2)),
        lambda: losses.squashed_gaussian(jnp.zeros((2, 2)), jnp.zeros(2), jnp.zeros(2)),
        lambda: losses.soft_policy(jnp.zeros(()), jnp.zeros(()), jnp.zeros(())),
    ):
        with pytest.raises(AssertionError, match="rank compatibility"):
            call()
