"""Q-networks for a finite number of actions."""

from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp

from accel_rl.networks.dense import Dense
from accel_rl.types import Array


class QNetwork(nn.Module):
    """Torso followed by one output for each action, or for each action and atom.

    Attributes:
      torso: from features to [B, width].
      num_actions: A.
      num_atoms: N, outputs that describe the distribution of an action's return; None: its mean.
      dueling: separate streams for state value and advantages.
      layer: makes a dense layer of a width and a name.
    """

    torso: nn.Module
    num_actions: int
    num_atoms: int | None = None
    dueling: bool = False
    layer: Callable[..., nn.Module] = Dense

    @nn.compact
    def __call__(self, features: Array) -> Array:
        """Return outputs [B, A], or [B, A, N] with atoms, for features [B, ...].

        Reference: for the dueling streams, Wang et al., "Dueling network architectures for deep
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
        return self.layer(num * atoms, name=name)(x).reshape(*x.shape[:-1], num, atoms)
