"""Actors and critics for continuous actions."""

import flax.linen as nn
import jax.numpy as jnp

from accel_rl.networks.dense import Dense
from accel_rl.types import Array

# Lillicrap et al. 2016, section 7: small initial weights keep first actions near mid-range.
_small = nn.initializers.variance_scaling(1e-4, "fan_in", "uniform")


class DeterministicActor(nn.Module):
    """Deterministic policy network.

    Attributes:
      body: layers, from [B, width] to [B, width].
      num: D, components of an action.
      torso: from features to [B, width], before the body; None: flattened features.
    """

    body: nn.Module
    num: int
    torso: nn.Module | None = None

    @nn.compact
    def __call__(self, features: Array) -> Array:
        """Return actions [B, D] in [-1, 1] for features [B, ...]."""
        x = self.body(_flat(self.torso, features))
        return jnp.tanh(Dense(self.num, kernel_init=_small, name="action")(x))


class GaussianActor(nn.Module):
    """Policy network with an independent Gaussian for each component of an action.

    Attributes:
      body: layers, from [B, width] to [B, width].
      num: D, components of an action.
      torso: from features to [B, width], before the body; None: flattened features.
      log_std_range: range to which the log standard deviation is clipped.
    """

    body: nn.Module
    num: int
    torso: nn.Module | None = None
    log_std_range: tuple[float, float] = (-20.0, 2.0)

    def __post_init__(self) -> None:
        low, high = self.log_std_range
        if not low < high:
            raise ValueError(f"log_std_range must rise, got {self.log_std_range}")
        super().__post_init__()

    @nn.compact
    def __call__(self, features: Array) -> tuple[Array, Array]:
        """Return means [B, D] and log standard deviations [B, D] for features [B, ...]."""
        x = self.body(_flat(self.torso, features))
        numbers = Dense(2 * self.num, kernel_init=_small, name="distribution")(x)
        mean, log_std = jnp.split(numbers, 2, axis=-1)
        return mean, jnp.clip(log_std, *self.log_std_range)


class Critic(nn.Module):
    """Action-value network of an observation and an action.

    Attributes:
      body: layers, from [B, width] to [B, width].
      torso: from features to [B, width], before the action is appended; None: flattened features.
    """

    body: nn.Module
    torso: nn.Module | None = None

    @nn.compact
    def __call__(self, features: Array, action: Array) -> Array:
        """Return values [B] of features [B, ...] and actions [B, D]."""
        x = jnp.concatenate([_flat(self.torso, features), action], axis=-1)
        return Dense(1, name="value")(self.body(x))[..., 0]


def _flat(torso: nn.Module | None, features: Array) -> Array:
    return features.reshape(features.shape[0], -1) if torso is None else torso(features)
