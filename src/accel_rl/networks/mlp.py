"""Multi-layer perceptrons."""

from collections.abc import Callable, Sequence

import flax.linen as nn

from accel_rl.types import Array


class MLP(nn.Module):
    """Dense layers, each followed by an activation.

    Attributes:
      hidden: width of each layer.
      activation: after each layer.
    """

    hidden: Sequence[int]
    activation: Callable[[Array], Array] = nn.relu

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """[B, features] to [B, hidden[-1]]."""
        for width in self.hidden:
            x = self.activation(nn.Dense(width)(x))
        return x
