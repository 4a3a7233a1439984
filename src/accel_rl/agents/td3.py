"""Twin delayed deep deterministic policy gradients (TD3)."""

from collections.abc import Mapping, Sequence
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from accel_rl.agents.agent import Agent
from accel_rl.agents.deterministic import RATES, deterministic
from accel_rl.agents.hyperparameters import Limits, options_only
from accel_rl.agents.losses import smoothed
from accel_rl.agents.updates import make_optimiser
from accel_rl.types import Array, Space

HYPERPARAMETERS = {
    **RATES,
    "tau": RATES["tau"]._replace(default=0.02),  # target updates are half as frequent as DDPG's
    "policy_delay": Limits(2, 1, 1e9, "updates between steps of the policy and of the targets"),
    "target_noise": Limits(0.2, 0, 10, "standard deviation of the target policy's noise"),
    "target_noise_clip": Limits(0.5, 0, 10, "the most by which it moves an action in [-1, 1]"),
}


@options_only
def td3(
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
    """Make a TD3 agent for actions in a bounded Box.

    TD3 extends DDPG with clipped double Q-learning, target policy smoothing and delayed updates of
    the policy and the target networks, once every `policy_delay` updates. The TD error of a
    transition is the larger in magnitude of its two critics' errors.

    Args:
      observation_space: Discrete, encoded one-hot for the networks, or a Box.
      action_space: a Box of floats with finite bounds.
      torso: flax module from features [B, ...] to [B, width], before the hidden layers; the policy
        and each critic have separate parameters. None: flattened features.
      hidden: widths of the hidden layers of the policy and of each critic.
      noise: exploration noise, "gaussian", "ornstein_uhlenbeck" or "none".
      loss: loss of each critic, "squared" (half the squared TD error) or "huber"; the two losses
        are added.
      optimiser: an optax transformation without learning-rate scaling, such as
        `optax.scale_by_adam()`; None: Adam.
      max_gradient_norm: global norm to which gradients of each network are clipped; none: no
        clipping.
      initialisation: "lecun", as flax's layers; or "orthogonal", with gain sqrt(2), 1 for values.

    Reference: Fujimoto et al., "Addressing function approximation error in actor-critic methods",
      ICML 2018.
    """

    def smoothing(hyper: Mapping[str, Array], action: Array, key: Array) -> Array:
        noise = hyper["target_noise"] * jax.random.normal(key, action.shape, jnp.float32)
        return jax.vmap(smoothed, (0, 0, None))(action, noise, hyper["target_noise_clip"])

    return deterministic(
        "td3",
        observation_space,
        action_space,
        num_critics=2,
        smoothing=smoothing,
        hyperparameters=HYPERPARAMETERS,
        torso=torso,
        hidden=hidden,
        noise=noise,
        loss=loss,
        optimiser=make_optimiser(optimiser, max_gradient_norm),
        initialisation=initialisation,
    )
