"""TD3: twin delayed deep deterministic policy gradients."""

from collections.abc import Mapping, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from accel_rl.agents.agent import Agent
from accel_rl.agents.deterministic import RATES, deterministic
from accel_rl.agents.hyperparameters import Limits
from accel_rl.agents.losses import smoothed
from accel_rl.types import Array, Space

HYPERPARAMETERS = {
    **RATES,
    "tau": RATES["tau"]._replace(default=0.02),  # the targets move half as often as DDPG's
    "policy_delay": Limits(2, 1, 1e9, "updates between steps of the policy and of the targets"),
    "target_noise": Limits(0.2, 0, 10, "standard deviation of the target policy's noise"),
    "target_noise_clip": Limits(0.5, 0, 10, "the most by which it moves an action in [-1, 1]"),
}


def td3(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | None = None,
    hidden: Sequence[int] = (64, 64),
    noise: str = "gaussian",
    loss: str = "squared",
    optimiser: optax.GradientTransformation | None = None,
) -> Agent:
    """A TD3 agent for actions in a bounded Box: DDPG with remedies against overestimation.

    Targets are made of the lesser value of two critics, of actions with noise; policy and targets
    move in one of `policy_delay` updates. TD errors are those of the critic that errs more.

    Args:
      observation_space: Discrete, which the networks read one-hot, or a Box.
      action_space: a Box of floats with bounds.
      torso: flax module from features [B, ...] to [B, width], before the layers of policy and
        critics, each with parameters of its own; None: features made flat.
      hidden: widths of the layers of policy and critics.
      noise: what is added to actions: "gaussian" or "ornstein_uhlenbeck".
      loss: of each critic, "squared" (half the square) or "huber"; both are added.
      optimiser: gives directions of descent before the learning rate, as `optax.scale_by_adam`
        does; None: Adam.

    Raises:
      TypeError: if a space does not fit, or an argument is of another type.
      ValueError: if noise or loss has no such name, or a width is below 1.

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
        optimiser=optimiser,
    )
