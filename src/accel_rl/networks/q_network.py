"""Networks of action values, for a finite number of actions."""

import flax.linen as nn
import jax.numpy as jnp

from accel_rl.arguments import instance, whole
from accel_rl.networks.dense import Dense
from accel_rl.types import Array


class QNetwork(nn.Module):
    """A torso and one value for each action, or one for each action and atom.

    Attributes:
      torso: from features to [B, width].
      num_actions: A.
      num_atoms: N numbers that describe the distribution of an action's return; None: its mean.
      dueling: values and advantages from streams of their own.
    """

    torso: nn.Module
    num_actions: int
    num_atoms: int | None = None
    dueling: bool = False

    def __post_init__(self) -> None:
        """Raises TypeError of no torso, or ValueError of no action or fewer than two atoms."""
        instance("torso", self.torso, nn.Module)
        whole("num_actions", self.num_actions, 1)
        if self.num_atoms is not None:
            whole("num_atoms", self.num_atoms, 2)
        super().__post_init__()

    @nn.compact
    def __call__(self, features: Array) -> Array:
        """Features [B, ...] to [B, A], or [B, A, N] with atoms.

        Reference: for the streams, Wang et al., "Dueling network architectures for deep
          reinforcement learning", ICML 2016, equation 9.
        """
        x = self.torso(features)
        atoms = self.num_atoms or 1
        values = self._head(x, self.num_actions, atoms, "values")
        if self.dueling:
            advantages = values - jnp.mean(values, axis=1, keepdims=True)
            values = self._head(x, 1, atoms, "state_value") + advantages
        return values if self.num_atoms else values[..., 0]

    def _head(self, x: Array, num: int, atoms: int, name: str) -> Array:
        return Dense(num * atoms, name=name)(x).reshape(*x.shape[:-1], num, atoms)
