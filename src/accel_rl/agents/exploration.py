"""Epsilon-greedy exploration, on a schedule or with one epsilon for each environment."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.hyperparameters import Limits
from accel_rl.arguments import whole, within
from accel_rl.types import Array, ArrayLike, PyTree
from accel_rl.words import unit_float

Exploration = Callable[[PyTree, Array], PyTree]
"""exploration(policy, indices [E] int32): policy for the environments of these indices; pure."""

EPSILON = {
    "epsilon_start": Limits(1, 0, 1, "share of random actions at the first step"),
    "epsilon_end": Limits(0.05, 0, 1, "share of random actions after epsilon_steps"),
    "epsilon_steps": Limits(250_000, 1, 1e12, "environment steps from the first share to the last"),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EpsilonGreedy:
    """Probability of random actions, linear in the steps taken; a pytree."""

    start: Array  # [] float32, or [E] if environments differ, as in Ape-X
    end: Array  # as start
    steps: Array  # [] float32

    @staticmethod
    def of(hyper: dict[str, Array]) -> "EpsilonGreedy":
        """Make one from the hyper-parameters of `EPSILON`."""
        return EpsilonGreedy(hyper["epsilon_start"], hyper["epsilon_end"], hyper["epsilon_steps"])

    def epsilon(self, step: ArrayLike) -> Array:
        """Return epsilon after `step` steps of all environments; shape as of `start`."""
        done = jnp.minimum(jnp.asarray(step).astype(jnp.float32) / self.steps, 1)
        return self.start + (self.end - self.start) * done


def epsilon_greedy(
    exploration: EpsilonGreedy, action: Array, num_actions: int, key: Array, step: ArrayLike
) -> Array:
    """Replace each action, with probability epsilon, by one drawn uniformly from all actions.

    Args:
      exploration: schedule of epsilon.
      action: [E] int32, greedy actions.
      num_actions: A, at most 65,536.
      key: PRNG key.
      step: steps of all environments so far.

    Returns:
      [E] int32.
    """
    words = jax.random.bits(key, (2, *action.shape), jnp.uint32)
    # The upper 16 bits select the action by a 16 x 16 bit product, which fits 32 bits; the bias is
    # at most 2^-16 for each action.
    drawn = ((words[1] >> np.uint32(16)) * np.uint32(num_actions)) >> np.uint32(16)
    return jnp.where(
        unit_float(words[0]) < exploration.epsilon(step), drawn.astype(jnp.int32), action
    )


def ape_x_exploration(num_envs: int, epsilon: float = 0.4, alpha: float = 7.0) -> Exploration:
    """Make Ape-X exploration: environment i of N has epsilon^(1 + alpha i / (N - 1)).

    Args:
      num_envs: N, the environments of all actors.
      epsilon: 0 to 1.
      alpha: at least 0.

    Returns:
      An exploration for `train.pipelined`, of policies that explore epsilon-greedily.

    Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018, section 4.1.
    """
    whole("num_envs", num_envs, 1)
    within("epsilon", epsilon, "[0, 1]")
    within("alpha", alpha, "[0, inf)")

    def exploration(policy: PyTree, indices: Array) -> PyTree:
        if hasattr(policy, "inner"):  # the policy of a wrapped agent
            return dataclasses.replace(policy, inner=exploration(policy.inner, indices))
        place = indices.astype(jnp.float32) / np.float32(max(1, num_envs - 1))
        share = jnp.float32(epsilon) ** (1 + alpha * place)
        return dataclasses.replace(policy, exploration=EpsilonGreedy(share, share, jnp.float32(1)))

    return exploration
