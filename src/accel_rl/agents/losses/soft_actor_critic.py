"""Squashed Gaussian actions and losses of soft actor-critic, for one transition.

Actions are in [-1, 1]; densities are with respect to these actions.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses.deterministic_policy import clipped_double_q
from accel_rl.types import Array

_LOG_2 = np.float32(math.log(2))
_LOG_ROOT_2_PI = np.float32(0.5 * math.log(2 * math.pi))


def squashed_gaussian(mean: Array, log_std: Array, noise: Array) -> tuple[Array, Array]:
    """Return the action tanh(mean + std * noise) and its log-density.

    The density is the normal density divided by the derivative of tanh. It is computed from the
    input of tanh, so it stays accurate where the action rounds to 1.

    Args:
      mean: [D] float32, of the input of tanh.
      log_std: [D] float32.
      noise: [D] float32, standard normal.

    Returns:
      The action, [D] float32 in [-1, 1], and its log-density, [] float32.

    Reference: Haarnoja et al., "Soft actor-critic: off-policy maximum entropy deep reinforcement
      learning with a stochastic actor", ICML 2018, appendix C, equation 21.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank(mean, 1)
    chex.assert_equal_shape([mean, log_std, noise])
    number = mean + jnp.exp(log_std) * noise
    normal = np.float32(-0.5) * jnp.square(noise) - log_std - _LOG_ROOT_2_PI
    # log(1 - tanh(x)^2), in a form whose difference does not round to 0 where |x| is large.
    slope = 2 * (_LOG_2 - number - jax.nn.softplus(-2 * number))
    return jnp.tanh(number), jnp.sum(normal - slope)


def soft_q(
    q_tm1: Array,
    r_t: Array,
    discount_t: Array,
    q_t: Array,
    log_prob_t: Array,
    temperature: Array,
) -> Array:
    """Return the soft TD errors, target - Q_i(s, a) of each critic i.

    The target is r + discount * (min_i Q_i(s', a') - temperature * log density of a').

    Args:
      q_tm1: [C] float32, the online critics' values of observation and action.
      r_t: [] float32, one-step or discounted n-step reward.
      discount_t: [] float32, bootstrap coefficient; 0 where the episode terminated.
      q_t: [C] float32, the target critics' values of the next observation and an action sampled
        from the policy.
      log_prob_t: [] float32, log-density of that action.
      temperature: [] float32, weight of the entropy.

    Returns:
      [C] float32, with a gradient with respect to `q_tm1` only.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equations 3 and 5.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([log_prob_t, temperature], 0)
    return clipped_double_q(q_tm1, r_t, discount_t, q_t - temperature * log_prob_t)


def soft_policy(q: Array, log_prob: Array, temperature: Array) -> Array:
    """Return the policy loss, temperature * log density - min_i Q_i(s, a).

    Args:
      q: [C] float32, the critics' values of the policy's action, differentiable in the policy.
      log_prob: [] float32, log-density of that action, differentiable in the policy.
      temperature: [] float32.

    Returns:
      [] float32, with a gradient with respect to `q` and `log_prob`.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equation 9.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([q, log_prob, temperature], [1, 0, 0])
    return jax.lax.stop_gradient(temperature) * log_prob - jnp.min(q)


def temperature_loss(log_temperature: Array, log_prob: Array, target_entropy: Array) -> Array:
    """Return the temperature loss; descent raises the temperature while entropy is below target.

    Args:
      log_temperature: [] float32.
      log_prob: [] float32, log-density of an action sampled from the policy.
      target_entropy: [] float32.

    Returns:
      [] float32, with a gradient with respect to `log_temperature` only.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equation 18.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([log_temperature, log_prob, target_entropy], 0)
    return -jnp.exp(log_temperature) * jax.lax.stop_gradient(log_prob + target_entropy)
