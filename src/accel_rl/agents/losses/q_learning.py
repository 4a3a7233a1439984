"""TD errors of Q-learning and double Q-learning for one transition."""

import jax
import jax.numpy as jnp

from accel_rl.types import Array


def q_learning(
    q_tm1: Array, a_tm1: Array, r_t: Array, discount_t: Array, q_t: Array, q_t_selector: Array
) -> Array:
    """Return the TD error of Q-learning, target - Q(s, a).

    The target is r + discount * Q_target(s', argmax_a' Q_selector(s', a')). With `q_t_selector`
    equal to `q_t` this is Q-learning; with the online network's values it is double Q-learning,
    which overestimates less.

    Args:
      q_tm1: [A] float32, the online network's values of the observation.
      a_tm1: [] int, the action taken.
      r_t: [] float32, one-step or discounted n-step reward.
      discount_t: [] float32, bootstrap coefficient; 0 where the episode terminated.
      q_t: [A] float32, the target network's values of the next observation.
      q_t_selector: [A] float32, values that select the next action.

    Returns:
      [] float32, with a gradient with respect to `q_tm1` only.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015;
      van Hasselt et al., "Deep reinforcement learning with double Q-learning", AAAI 2016, eq. 4.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_rank([q_tm1, a_tm1, r_t, discount_t], [1, 0, 0, 0])
    chex.assert_equal_shape([q_tm1, q_t, q_t_selector])
    target = r_t + discount_t * q_t[jnp.argmax(q_t_selector)]
    return jax.lax.stop_gradient(target) - q_tm1[a_tm1]
