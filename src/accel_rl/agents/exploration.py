"""How an agent tries actions that it does not hold for best."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.hyperparameters import Limits
from accel_rl.types import Array, ArrayLike

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
