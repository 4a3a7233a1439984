"""Exploration that differs from environment to environment."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from accel_rl.agents.exploration import EpsilonGreedy
from accel_rl.arguments import real, whole
from accel_rl.train.actors import Exploration
from accel_rl.types import Array


def ape_x_exploration(num_envs: int, epsilon: float = 0.4, alpha: float = 7.0) -> Exploration:
    """Environment i of N acts at random with probability epsilon^(1 + alpha i / (N - 1)), always.

    Args:
      num_envs: N, those of all actors.
      epsilon: 0 to 1.
      alpha: at least 0.

    Returns:
      For `pipelined`; it raises TypeError where a policy has no epsilon-greedy exploration.

    Raises:
      TypeError: if a number is of another type.
      ValueError: if a number is out of range.

    Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018, section 4.1.
    """
    whole("num_envs", num_envs, 1)
    if not 0 <= real("epsilon", epsilon) <= 1:
        raise ValueError(f"epsilon must be from 0 to 1, got {epsilon}")
    if not 0 <= real("alpha", alpha) < np.inf:
        raise ValueError(f"alpha must be finite and at least 0, got {alpha}")

    def exploration(policy: Any, numbers: Array) -> Any:
        if hasattr(policy, "inner"):  # of an agent around another
            return dataclasses.replace(policy, inner=exploration(policy.inner, numbers))
        if not isinstance(getattr(policy, "exploration", None), EpsilonGreedy):
            raise TypeError(f"a policy must explore epsilon-greedily, got {type(policy).__name__}")
        place = numbers.astype(jnp.float32) / np.float32(max(1, num_envs - 1))
        share = jnp.float32(epsilon) ** (1 + alpha * place)
        return dataclasses.replace(policy, exploration=EpsilonGreedy(share, share, jnp.float32(1)))

    return exploration
