"""Losses of deterministic policy gradients (DDPG, TD3) for one transition.

Actions are in [-1, 1]. With several critics, targets use the minimum of their values.
"""

import jax
import jax.numpy as jnp

from accel_rl.types import Array


def smoothed(action: Array, noise: Array, clip: Array) -> Array:
    """Smooth a target policy's action with clipped noise.

    Args:
      action: [D] float32 in [-1, 1].
      noise: [D] float32.
      clip: [] float32, largest magnitude of a noise component.

    Returns:
      [D] float32 in [-1, 1].

    Reference: Fujimoto et al., "Addressing function approximation error in actor-critic methods",
      ICML 2018, section 5.3.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_equal_shape([action, noise])
    return jnp.clip(action + jnp.clip(noise, -clip, clip), -1, 1)


def clipped_double_q(q_tm1: Array, r_t: Array, discount_t: Array, q_t: Array) -> Array:
    """Return the TD errors of clipped double Q-learning, target - Q_i(s, a) of each critic i.

    The target is r + discount * min_i Q_i(s', a'). One critic gives the TD error of DDPG, two give
    those of TD3.

    Args:
      q_tm1: [C] float32, the online critics' values of observation and action.
      r_t: [] float32, one-step or discounted n-step reward.
      discount_t: [] float32, bootstrap coefficient; 0 where the episode terminated.
      q_t: [C] float32, the target critics' values of the next observation and the target policy's
        action.

    Returns:
      [C] float32, with a gradient with respect to `q_tm1` only.

    Reference: Lillicrap et al., "Continuous control with deep reinforcement learning", ICLR 2016,
      algorithm 1; Fujimoto et al., "Addressing function approximation error in actor-critic
      methods", ICML 2018, equation 10.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([q_tm1, r_t, discount_t], [1, 0, 0])
    chex.assert_equal_shape([q_tm1, q_t])
    return jax.lax.stop_gradient(r_t + discount_t * jnp.min(q_t)) - q_tm1


def worst(error: Array) -> Array:
    """Return the TD error of largest magnitude among the critics, the source of the priority.

    Args:
      error: [C] float32.

    Returns:
      [] float32, signed.

    Reference: Fujimoto et al., "An equivalence between loss functions and non-uniform sampling in
      experience replay", NeurIPS 2020, with priorities from max(|error_1|, |error_2|).
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank(error, 1)
    return error[jnp.argmax(jnp.abs(error))]


def deterministic_policy(q: Array) -> Array:
    """Return the policy loss -Q(s, policy(s)), whose gradient is the deterministic policy gradient.

    Args:
      q: [] float32, a critic's value of the policy's action, differentiable in the policy.

    Returns:
      [] float32.

    Reference: Silver et al., "Deterministic policy gradient algorithms", ICML 2014, theorem 1.
    """
    return -q
