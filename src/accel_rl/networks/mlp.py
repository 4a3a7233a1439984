"""Multi-layer perceptrons."""

from collections.abc import Callable, Sequence

import flax.linen as nn

from accel_rl.networks.dense import Dense
from accel_rl.networks.widths import require_widths
from accel_rl.types import Array


class MLP(nn.Module):
    """Dense layers, each followed by an activation.

    Attributes:
      hidden: width of each layer.
      activation: applied after each layer.
    """

    hidden: Sequence[int]
    activation: Callable[[Array], Array] = nn.relu

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError unless `hidden` has one or more widths of at least 1."""
        require_widths("hidden", self.hidden)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Flatten features [B, ...] and return [B, hidden[-1]]."""
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = self.activation(Dense(width)(x))
        return x
