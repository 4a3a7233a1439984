"""DDPG: deep deterministic policy gradients."""

from collections.abc import Sequence

import flax.linen as nn
import optax

from accel_rl.agents.agent import Agent
from accel_rl.agents.deterministic import RATES, deterministic
from accel_rl.types import Space


def ddpg(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | None = None,
    hidden: Sequence[int] = (64, 64),
    noise: str = "gaussian",
    loss: str = "squared",
    optimiser: optax.GradientTransformation | None = None,
) -> Agent:
    """A DDPG agent for actions in a bounded Box.

    n-step targets come with the batch (`replay.make(n_step=...)`); prioritised learning with its
    weights.

    Args:
      observation_space: Discrete, which the networks read one-hot, or a Box.
      action_space: a Box of floats with bounds.
      torso: flax module from features [B, ...] to [B, width], before the layers of policy and
        critic, each with parameters of its own; None: features made flat.
      hidden: widths of the layers of policy and critic.
      noise: what is added to actions: "gaussian" or "ornstein_uhlenbeck".
      loss: of the critic, "squared" (half the square) or "huber".
      optimiser: gives directions of descent before the learning rate, as `optax.scale_by_adam`
        does; None: Adam.

    Raises:
      TypeError: if a space does not fit, or an argument is of another type.
      ValueError: if noise or loss has no such name, or a width is below 1.

    Reference: Lillicrap et al., "Continuous control with deep reinforcement learning", ICLR 2016.
    """
    return deterministic(
        "ddpg",
        observation_space,
        action_space,
        num_critics=1,
        smoothing=None,
        hyperparameters=RATES,
        torso=torso,
        hidden=hidden,
        noise=noise,
        loss=loss,
        optimiser=optimiser,
    )
