"""Detection of values that no return can have, while a training runs."""

import math
import warnings
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.types import Array, Batch

EXCESS = "value_excess"
TOLERATED = 1.5  # an estimate may exceed the limit a little without running away


def value_limit(agent: Agent, batch: Batch, metrics: Mapping[str, Array]) -> Array:
    """Return the largest value that rewards and discounts of a batch allow, [] float32.

    If all transitions had the largest |r| / (1 - discount) of the batch, this would be their value.
    It is infinite without discounting. An agent that reports a temperature is also rewarded for the
    entropy of its actions, at most log(2) for each component in [-1, 1].

    Args:
      agent: that learns.
      batch: that it learns from, with n-step rewards and discounts.
      metrics: of its update.
    """
    most = jnp.abs(batch.reward)
    if "temperature" in metrics:
        most += metrics["temperature"] * np.float32(
            math.log(2) * math.prod(agent.action_space.shape)
        )
    left = 1 - batch.discount
    allowed = most / jnp.where(left > 0, left, np.float32(1))
    return jnp.max(jnp.where(left > 0, allowed, np.float32(np.inf)))


def warn_of_excess(metrics: Mapping[str, np.ndarray | float]) -> bool:
    """Warn, and return True, if values exceed what rewards and discounts seen so far allow."""
    excess = np.ravel(np.asarray(metrics.get(EXCESS, np.nan), np.float64))
    above = np.flatnonzero(excess > TOLERATED)
    if not above.size:
        return False
    seeds = f" for seeds {', '.join(map(str, above))}" if excess.size > 1 else ""
    warnings.warn(
        f"values are {np.nanmax(excess):.3g} times the most that rewards and gamma allow{seeds} at "
        f"step {int(np.ravel(metrics['steps'])[0]):,}: what is learned diverges. A target network "
        "that is copied less often (agent.target_period, agent.tau), a lower learning rate, a "
        "smaller reward_scale or clipped gradients (agent.max_gradient_norm) help",
        RuntimeWarning,
        stacklevel=3,
    )
    return True
