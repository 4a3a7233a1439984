"""A step of an optax optimiser whose learning rate is a leaf."""

from typing import Any

import jax
import optax

from accel_rl.types import Array


def adam(max_gradient_norm: float | None = None, eps: float = 1e-8) -> optax.GradientTransformation:
    """Adam's directions, before the learning rate, of gradients clipped to a global norm.

    Raises:
      ValueError: if the norm is not above 0.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """
    directions = optax.scale_by_adam(eps=eps)
    if max_gradient_norm is None:
        return directions
    if not max_gradient_norm > 0:
        raise ValueError(f"max_gradient_norm must be above 0, got {max_gradient_norm}")
    return optax.chain(optax.clip_by_global_norm(max_gradient_norm), directions)


def descend(
    optimiser: optax.GradientTransformation,
    gradients: Any,
    state: Any,
    params: Any,
    learning_rate: Array,
) -> tuple[Any, Any]:
    """New parameters and the optimiser's new state.

    Args:
      optimiser: gives directions of descent, not yet multiplied by a learning rate.
      gradients: as `params`.
      state: the optimiser's.
      params: pytree of float32.
      learning_rate: [] float32.
    """
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in int32
        directions, state = optimiser.update(gradients, state, params)
    return jax.tree.map(lambda p, d: p - learning_rate * d, params, directions), state
