"""Convolutional torsos for small pictures."""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax.numpy as jnp

from accel_rl.arguments import whole
from accel_rl.networks.checks import require_widths
from accel_rl.networks.dense import Dense
from accel_rl.networks.mlp import MLP
from accel_rl.types import Array


def windows(pictures: Array, size: int) -> Array:
    """Every square of `size` by `size` cells inside the pictures, stride 1.

    Args:
      pictures: [B, H, W, C].
      size: K, from 1 to the smaller of H and W.

    Returns:
      [B, H - K + 1, W - K + 1, K * K * C], by rows, columns and channels of a window.

    Raises:
      ValueError: if the pictures are no such array, or smaller than a window.
    """
    if pictures.ndim != 4 or min(pictures.shape[1:3]) < size:
        raise ValueError(
            f"pictures must be [B, H, W, C] with H and W at least {size}, got {pictures.shape}"
        )
    height, width = (side - size + 1 for side in pictures.shape[1:3])
    corners = [(row, column) for row in range(size) for column in range(size)]
    return jnp.concatenate(
        [pictures[:, i : i + height, j : j + width] for i, j in corners], axis=-1
    )


class ConvTorso(nn.Module):
    """Convolutions without padding, then dense layers, each followed by an activation.

    A convolution is a product with the windows of its picture: on CPUs XLA's own, and above all
    its gradient, is several times slower for pictures of this size. The defaults are the network
    of MinAtar's DQN, for [10, 10, C] cells.

    Attributes:
      filters: channels after each convolution.
      size: sides of their windows.
      hidden: width of each dense layer.
      activation: after each layer.

    Reference: Young and Tian, "MinAtar: an Atari-inspired testbed for thorough and reproducible
      reinforcement learning experiments", 2019, section 3.
    """

    filters: Sequence[int] = (16,)
    size: int = 3
    hidden: Sequence[int] = (128,)
    activation: Callable[[Array], Array] = nn.relu

    def __post_init__(self) -> None:
        """Raises TypeError or ValueError if a width or a side is not an int of at least 1."""
        require_widths("filters", self.filters)
        whole("size", self.size, 1)
        require_widths("hidden", self.hidden)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Pictures [B, H, W, C] to [B, hidden[-1]]."""
        for channels in self.filters:
            x = self.activation(Dense(channels)(windows(x, self.size)))
        return MLP(self.hidden, self.activation)(x)
