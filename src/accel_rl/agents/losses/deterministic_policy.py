"""Deterministic policy gradients with one critic or several; one transition each.

Actions are in [-1, 1]. With several critics the least of their values makes the target.
"""

import jax
import jax.numpy as jnp

from accel_rl.agents.losses.checks import require_shapes
from accel_rl.types import Array


def smoothed(action: Array, noise: Array, clip: Array) -> Array:
    """A target policy's action, moved by noise that is clipped: similar actions, similar values.

    Args:
      action: [D] float32 in [-1, 1].
      noise: [D] float32.
      clip: [] float32, the most by which a component may move.

    Returns:
      [D] float32 in [-1, 1].

    Raises:
      ValueError: if a shape does not fit.

    Reference: Fujimoto et al., "Addressing function approximation error in actor-critic methods",
      ICML 2018, section 5.3.
    """
    require_shapes(action=(action, "D"), noise=(noise, "D"), clip=(clip, ""))
    return jnp.clip(action + jnp.clip(noise, -clip, clip), -1, 1)


def clipped_double_q(q_tm1: Array, r_t: Array, discount_t: Array, q_t: Array) -> Array:
    """Target - Q_i(s, a) of each critic i, with target = r + discount * min_i Q_i(s', a').

    With one critic this is the error of DDPG's, with two that of TD3's.

    Args:
      q_tm1: [C] float32, the learning critics' values of observation and action.
      r_t: [] float32, the reward, of one step or discounted over n.
      discount_t: [] float32, what the value of the next observation is worth; 0 where the episode
        ended.
      q_t: [C] float32, the target critics' values of the next observation and the target policy's
        action.

    Returns:
      [C] float32, with a gradient with respect to `q_tm1` only.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Lillicrap et al., "Continuous control with deep reinforcement learning", ICLR 2016,
      algorithm 1; Fujimoto et al., "Addressing function approximation error in actor-critic
      methods", ICML 2018, equation 10.
    """
    require_shapes(q_tm1=(q_tm1, "C"), r_t=(r_t, ""), discount_t=(discount_t, ""), q_t=(q_t, "C"))
    return jax.lax.stop_gradient(r_t + discount_t * jnp.min(q_t)) - q_tm1


def worst(error: Array) -> Array:
    """The error of the critic that errs most, whose size is the item's priority.

    Args:
      error: [C] float32.

    Returns:
      [] float32, signed.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Fujimoto et al., "An equivalence between loss functions and non-uniform sampling in
      experience replay", NeurIPS 2020, where priorities are of max(|error_1|, |error_2|).
    """
    require_shapes(error=(error, "C"))
    return error[jnp.argmax(jnp.abs(error))]


def deterministic_policy(q: Array) -> Array:
    """What the policy's action costs: -Q(s, policy(s)), whose gradient is the policy gradient's.

    Args:
      q: [] float32, a critic's value of the policy's action, as a function of the policy.

    Returns:
      [] float32.

    Raises:
      ValueError: if a shape does not fit.

    Reference: Silver et al., "Deterministic policy gradient algorithms", ICML 2014, theorem 1.
    """
    require_shapes(q=(q, ""))
    return -q
