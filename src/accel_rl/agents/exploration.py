"""Epsilon-greedy exploration: on a schedule, or with an epsilon for each environment."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.hyperparameters import Limits
from accel_rl.arguments import real, whole
from accel_rl.types import Array, ArrayLike

Exploration = Callable[[Any, Array], Any]
"""exploration(policy, indices [E] int32): policy with which the environments of these indices act;
pure."""

EPSILON = {
    "epsilon_start": Limits(1, 0, 1, "share of random actions at the first step"),
    "epsilon_end": Limits(0.05, 0, 1, "share of random actions after epsilon_steps"),
    "epsilon_steps": Limits(250_000, 1, 1e12, "environment steps from the first share to the last"),
}


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy:
    """A share of random actions that changes linearly with the steps taken; a pytree."""

    start: Array  # [] float32, or [E] where environments differ, as in Ape-X
    end: Array  # as start
    steps: Array  # [] float32

    @staticmethod
    def of(hyper: dict[str, Array]) -> "EpsilonGreedy":
        """From the hyper-parameters of `EPSILON`."""
        return EpsilonGreedy(hyper["epsilon_start"], hyper["epsilon_end"], hyper["epsilon_steps"])

    def epsilon(self, step: ArrayLike) -> Array:
        """The share after `step` steps of all environments, as `start`."""
        done = jnp.minimum(jnp.asarray(step).astype(jnp.float32) / self.steps, 1)
        return self.start + (self.end - self.start) * done


jax.tree_util.register_dataclass(EpsilonGreedy, ["start", "end", "steps"], [])


def epsilon_greedy(
    exploration: EpsilonGreedy, action: Array, num_actions: int, key: Array, step: ArrayLike
) -> Array:
    """Each action with probability epsilon replaced by one drawn uniformly, its own included.

    Args:
      exploration: the share.
      action: [E] int32.
      num_actions: A, at most 65,536.
      key: random key.
      step: steps of all environments so far.

    Returns:
      [E] int32.
    """
    words = jax.random.bits(key, (2, *action.shape), jnp.uint32)
    uniform = (words[0] >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)
    # The upper bits choose: a product of 16 by 16 bits, as even as 65,536 is large.
    drawn = ((words[1] >> np.uint32(16)) * np.uint32(num_actions)) >> np.uint32(16)
    return jnp.where(uniform < exploration.epsilon(step), drawn.astype(jnp.int32), action)


def ape_x_exploration(num_envs: int, epsilon: float = 0.4, alpha: float = 7.0) -> Exploration:
    """Give environment i of N the constant epsilon^(1 + alpha i / (N - 1)) as its epsilon.

    Args:
      num_envs: N, the environments of all actors.
      epsilon: 0 to 1.
      alpha: at least 0.

    Returns:
      An exploration for `train.pipelined`; it raises TypeError for a policy that does not explore
      epsilon-greedily.

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

    def exploration(policy: Any, indices: Array) -> Any:
        if hasattr(policy, "inner"):  # the policy of a wrapped agent
            return dataclasses.replace(policy, inner=exploration(policy.inner, indices))
        if not isinstance(getattr(policy, "exploration", None), EpsilonGreedy):
            raise TypeError(f"a policy must explore epsilon-greedily, got {type(policy).__name__}")
        place = indices.astype(jnp.float32) / np.float32(max(1, num_envs - 1))
        share = jnp.float32(epsilon) ** (1 + alpha * place)
        return dataclasses.replace(policy, exploration=EpsilonGreedy(share, share, jnp.float32(1)))

    return exploration
