"""Convolutional torsos for images."""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax.numpy as jnp

from accel_rl.networks.dense import MLP, Dense
from accel_rl.types import Array


def windows(pictures: Array, size: int) -> Array:
    """Extract all `size` x `size` windows of a batch of images, with stride 1.

    Args:
      pictures: [B, H, W, C].
      size: K, from 1 to the smaller of H and W.

    Returns:
      [B, H - K + 1, W - K + 1, K * K * C]; the last axis is ordered by row, column and channel of
      the window.
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

    A convolution is computed as a matrix product with the windows of its input. For images of this
    size XLA's convolution on CPUs, above all its gradient, is several times slower. The defaults
    are the network of MinAtar's DQN, for [10, 10, C] images.

    Attributes:
      filters: channels after each convolution.
      size: side of each convolution's square window.
      hidden: width of each dense layer.
      activation: applied after each layer.
      layer: makes a dense layer of a width.

    Reference: Young and Tian, "MinAtar: an Atari-inspired testbed for thorough and reproducible
      reinforcement learning experiments", 2019, section 3.
    """

    filters: Sequence[int] = (16,)
    size: int = 3
    hidden: Sequence[int] = (128,)
    activation: Callable[[Array], Array] = nn.relu
    layer: Callable[[int], nn.Module] = Dense

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return features [B, hidden[-1]] of images [B, H, W, C]."""
        for channels in self.filters:
            x = self.activation(Dense(channels)(windows(x, self.size)))
        return MLP(self.hidden, self.activation, self.layer)(x)


class NatureTorso(nn.Module):
    """Three strided convolutions and a dense layer, for images of 84 by 84 with values 0 to 255.

    Attributes:
      hidden: width of the dense layer.
      layer: makes a dense layer of a width.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 518,
      2015, Methods, model architecture.
    """

    hidden: int = 512
    layer: Callable[[int], nn.Module] = Dense

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return features [B, hidden] of images [B, H, W, C]."""
        x = x / 255
        for channels, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(channels, (size, size), stride, padding="VALID")(x))
        return MLP((self.hidden,), layer=self.layer)(x)
