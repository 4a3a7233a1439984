"""The n-step return of one window of transitions, shared by replay and actors."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import scalar_within
from accel_rl.types import Array, ArrayLike


class NStep(NamedTuple):
    """Reward sum, bootstrap discount and length of an n-step window."""

    reward: Array  # float32, sum over j < k of gamma^j * earlier discounts * reward j
    discount: Array  # float32, gamma^k times the k discounts: factor of the bootstrap value
    steps: Array  # int32, k in 1..n: bootstrap from the observation after step k - 1


def n_step(
    reward: Array,
    discount: Array,
    truncated: Array | None,
    gamma: ArrayLike,
    final_observations: bool = True,
) -> NStep:
    """Compute the n-step return of the first of n steps, cut where its episode ends or truncates.

    Args:
      reward: [n] float32.
      discount: [n] float32, the environment's, 0 where the episode ended.
      truncated: [n] bool, or None if no episode is truncated.
      gamma: discount factor of a step.
      final_observations: True if final observations of truncated episodes are available. If not, a
        window that would bootstrap from one ends a step earlier, at the last available observation;
        a window that begins with a truncated step has no target and must not be drawn.

    Reference: Sutton and Barto, Reinforcement Learning, 2nd edition, section 7.1; on truncation,
      Pardo et al., "Time limits in reinforcement learning", ICML 2018.
    """
    import chex  # at the first trace, since it takes 0.1 s

    chex.assert_axis_dimension_gt(reward, 0, 0)
    given = [reward, discount] if truncated is None else [reward, discount, truncated]
    chex.assert_equal_shape_prefix(given, 1)
    scalar_within("gamma", gamma, "[0, 1]")
    n = len(reward)
    weight = jnp.float32(1)  # gamma^j times the discounts so far
    within = jnp.bool_(True)  # step j belongs to the episode and to the window
    total, steps = jnp.float32(0), jnp.int32(0)
    for j in range(n):
        if j and truncated is not None and not final_observations:
            within &= ~truncated[j] | (discount[j] <= 0)
        # Selected, not multiplied by 0: a reward after the end may be NaN or infinite.
        total += jnp.where(within, weight * reward[j], np.float32(0))
        steps += within.astype(jnp.int32)
        weight = jnp.where(within, weight * gamma * discount[j], weight)
        within &= discount[j] > 0
        if truncated is not None:
            within &= ~truncated[j]
    return NStep(total, weight, steps)
