"""Soft actor-critic: actions of a squashed normal distribution, and losses; one transition each.

Actions are in [-1, 1], and so probabilities are densities there.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.losses.checks import require_shapes
from accel_rl.agents.losses.deterministic_policy import clipped_double_q
from accel_rl.types import Array

_LOG_2 = np.float32(math.log(2))
_LOG_ROOT_2_PI = np.float32(0.5 * math.log(2 * math.pi))


def squashed_gaussian(mean: Array, log_std: Array, noise: Array) -> tuple[Array, Array]:
    """The action tanh(mean + std * noise), and the logarithm of its density.

    The density is that of a normal distribution over the derivative of tanh. It is computed from
    the number before tanh, so that it stays exact where the action rounds to 1.

    Args:
      mean: [D] float32, of the number before tanh.
      log_std: [D] float32.
      noise: [D] float32, standard normal.

    Returns:
      [D] float32 in [-1, 1]; [] float32.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Haarnoja et al., "Soft actor-critic: off-policy maximum entropy deep reinforcement
      learning with a stochastic actor", ICML 2018, appendix C, equation 21.
    """
    require_shapes(mean=(mean, "D"), log_std=(log_std, "D"), noise=(noise, "D"))
    number = mean + jnp.exp(log_std) * noise
    normal = np.float32(-0.5) * jnp.square(noise) - log_std - _LOG_ROOT_2_PI
    # log(1 - tanh(x)^2), without the difference that rounds to 0 where |x| is large
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
    """Target - Q_i(s, a) of each critic i: the target's value is min_i Q_i(s', a') plus entropy.

    Args:
      q_tm1: [C] float32, the learning critics' values of observation and action.
      r_t: [] float32, the reward, of one step or discounted over n.
      discount_t: [] float32, what the value of the next observation is worth; 0 where the episode
        ended.
      q_t: [C] float32, the target critics' values of the next observation and an action of the
        policy's.
      log_prob_t: [] float32, the logarithm of that action's density.
      temperature: [] float32, what entropy is worth.

    Returns:
      [C] float32, with a gradient with respect to `q_tm1` only.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equations 3 and 5.
    """
    require_shapes(
        q_tm1=(q_tm1, "C"),
        r_t=(r_t, ""),
        discount_t=(discount_t, ""),
        q_t=(q_t, "C"),
        log_prob_t=(log_prob_t, ""),
        temperature=(temperature, ""),
    )
    return clipped_double_q(q_tm1, r_t, discount_t, q_t - temperature * log_prob_t)


def soft_policy(q: Array, log_prob: Array, temperature: Array) -> Array:
    """What the policy's action costs: temperature * log density - min_i Q_i(s, a).

    Args:
      q: [C] float32, the critics' values of the policy's action, as a function of the policy.
      log_prob: [] float32, as a function of the policy.
      temperature: [] float32.

    Returns:
      [] float32, with a gradient with respect to `q` and `log_prob`.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equation 9.
    """
    require_shapes(q=(q, "C"), log_prob=(log_prob, ""), temperature=(temperature, ""))
    return jax.lax.stop_gradient(temperature) * log_prob - jnp.min(q)


def temperature_loss(log_temperature: Array, log_prob: Array, target_entropy: Array) -> Array:
    """What makes the temperature rise while the policy's entropy is below its target.

    Args:
      log_temperature: [] float32.
      log_prob: [] float32, the logarithm of the density of an action of the policy's.
      target_entropy: [] float32.

    Returns:
      [] float32, with a gradient with respect to `log_temperature` only.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Haarnoja et al., "Soft actor-critic algorithms and applications", arXiv 1812.05905,
      equation 18.
    """
    require_shapes(
        log_temperature=(log_temperature, ""),
        log_prob=(log_prob, ""),
        target_entropy=(target_entropy, ""),
    )
    return -jnp.exp(log_temperature) * jax.lax.stop_gradient(log_prob + target_entropy)
