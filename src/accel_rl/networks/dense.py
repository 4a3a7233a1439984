"""Dense layers with fast gradients on CPUs, and multi-layer perceptrons of them."""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

from accel_rl.arguments import whole
from accel_rl.types import Array


@jax.custom_vjp
def product(x: Array, kernel: Array) -> Array:
    """Return `x @ kernel`; on CPUs its gradient reads a transposed copy of `x`.

    XLA's fast product of small matrices on CPUs needs a row-major left operand. The kernel's
    gradient, `x.T @ g`, would use another product, at most half as fast; the copy is cheap by
    comparison. Other platforms multiply the transposed operand in place.

    Args:
      x: [..., F] float32.
      kernel: [F, W] float32.

    Returns:
      [..., W] float32. Only first-order reverse-mode derivatives are defined.
    """
    return x @ kernel


def _forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return product(x, kernel), (x, kernel)


def _backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    rows = jax.lax.platform_dependent(
        x.reshape(-1, x.shape[-1]),
        # The barrier keeps XLA from folding the transpose back into the product.
        cpu=lambda x: jax.lax.optimization_barrier(x.T),
        default=jnp.transpose,
    )
    return gradient @ kernel.T, rows @ gradient.reshape(-1, gradient.shape[-1])


product.defvjp(_forward, _backward)


def _dot_general(
    x: Array, kernel: Array, dimension_numbers: object, precision: object = None
) -> Array:
    """Contract the last axis of `x` with the first of `kernel`, as `nn.Dense.dot_general`."""
    del dimension_numbers
    if precision is not None:
        raise ValueError(f"precision must be None, the backend's own, got {precision}")
    return product(x, kernel)


class Dense(nn.Dense):
    """`flax.linen.Dense` with `product` as its matrix product."""

    dot_general: Callable[..., Array] | None = _dot_general

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError unless `features` is an int of at least 1."""
        whole("features", self.features, 1)
        super().__post_init__()


class MLP(nn.Module):
    """Dense layers, each followed by an activation.

    Attributes:
      hidden: width of each layer.
      activation: applied after each layer.
      layer: makes a layer of a width.
    """

    hidden: Sequence[int]
    activation: Callable[[Array], Array] = nn.relu
    layer: Callable[[int], nn.Module] = Dense

    def __post_init__(self) -> None:
        whole("number of hidden layers", len(self.hidden), 1)
        for width in self.hidden:
            whole("hidden", width, 1)
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Flatten features [B, ...] and return [B, hidden[-1]]."""
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = self.activation(self.layer(width)(x))
        return x
