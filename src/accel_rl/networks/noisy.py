"""Noisy dense layers, which explore by learned noise on their weights."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.networks.dense import product
from accel_rl.types import Array

NOISE = "noise"  # flax's stream of random numbers; without it, layers use their means


class NoisyDense(nn.Module):
    """Dense layer with factorised Gaussian noise on its weights and biases.

    Weights are mean + deviation * f(e_in) f(e_out), with f(e) = sign(e) sqrt(|e|) and e standard
    normal, drawn from the stream `noise`: once for all rows of a batch.

    Attributes:
      features: W, the layer's width.
      sigma: initial deviation, times the square root of the number of inputs.

    Reference: Fortunato et al., "Noisy networks for exploration", ICLR 2018, section 3, equations 9
      to 11.
    """

    features: int
    sigma: float = 0.5

    def __post_init__(self) -> None:
        whole("features", self.features, 1)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return [..., W] for inputs [..., F]."""
        num = x.shape[-1]
        bound = float(1 / np.sqrt(num))

        def mean(key: Array, shape: tuple[int, ...]) -> Array:
            return jax.random.uniform(key, shape, jnp.float32, -bound, bound)

        deviation = nn.initializers.constant(self.sigma * bound)
        shapes = (num, self.features), (self.features,)
        kernel, bias = self.param("kernel", mean, shapes[0]), self.param("bias", mean, shapes[1])
        spread = self.param("kernel_deviation", deviation, shapes[0])
        bias_spread = self.param("bias_deviation", deviation, shapes[1])
        if not self.has_rng(NOISE):
            return product(x, kernel) + bias
        drawn = jax.random.normal(self.make_rng(NOISE), (num + self.features,), jnp.float32)
        drawn = jnp.sign(drawn) * jnp.sqrt(jnp.abs(drawn))
        rows, columns = drawn[:num], drawn[num:]
        # The noise of the product, without a matrix of the noise of the weights.
        noise = product(x * rows, spread) * columns
        return product(x, kernel) + noise + bias + bias_spread * columns
