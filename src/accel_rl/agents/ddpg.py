"""Deep deterministic policy gradients (DDPG)."""

from collections.abc import Sequence
from typing import Literal

import flax.linen as nn
import optax

from accel_rl.agents.agent import Agent
from accel_rl.agents.deterministic import RATES, deterministic
from accel_rl.agents.hyperparameters import options_only
from accel_rl.agents.updates import make_optimiser
from accel_rl.types import Space


@options_only
def ddpg(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | None = None,
    hidden: Sequence[int] = (64, 64),
    noise: str = "gaussian",
    loss: str = "squared",
    optimiser: optax.GradientTransformation | None = None,
    max_gradient_norm: float | None = None,
    initialisation: Literal["lecun", "orthogonal"] = "lecun",
) -> Agent:
    """Make a DDPG agent for actions in a bounded Box.

    The batch determines n-step targets (`replay.make(n_step=...)`), its importance-sampling weights
    prioritised learning.

    Args:
      observation_space: Discrete, encoded one-hot for the networks, or a Box.
      action_space: a Box of floats with finite bounds.
      torso: flax module from features [B, ...] to [B, width], before the hidden layers; the policy
        and the critic have separate parameters. None: flattened features.
      hidden: widths of the hidden layers of the policy and of the critic.
      noise: exploration noise, "gaussian", "ornstein_uhlenbeck" or "none".
      loss: critic loss, "squared" (half the squared TD error) or "huber".
      optimiser: an optax transformation without learning-rate scaling, such as
        `optax.scale_by_adam()`; None: Adam.
      max_gradient_norm: global norm to which gradients of each network are clipped; none: no
        clipping.
      initialisation: "lecun", as flax's layers; or "orthogonal", with gain sqrt(2), 1 for values.

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
        optimiser=make_optimiser(optimiser, max_gradient_norm),
        initialisation=initialisation,
    )
