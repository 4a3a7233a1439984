"""Steps of optax optimisers with a traced learning rate."""

import jax
import jax.numpy as jnp
import optax

from accel_rl.arguments import within
from accel_rl.types import Array, PyTree


def adam(max_gradient_norm: float | None = None, eps: float = 1e-8) -> optax.GradientTransformation:
    """Make Adam without learning-rate scaling, with optional clipping to a global gradient norm.

    Raises:
      TypeError: if the norm is not a number.
      ValueError: if the norm is not above 0.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """
    directions = optax.scale_by_adam(eps=eps)
    if max_gradient_norm is None:
        return directions
    within("max_gradient_norm", max_gradient_norm, "(0, inf]")
    return optax.chain(optax.clip_by_global_norm(max_gradient_norm), directions)


def or_adam(
    optimiser: optax.GradientTransformation | None, max_gradient_norm: float | None = None
) -> optax.GradientTransformation:
    """Return the given optimiser, checked, or Adam if it is None.

    Raises:
      TypeError: if it is not an optimiser, or the norm is not a number.
      ValueError: if the optimiser includes a negative learning rate, as `optax.adam` does; if both
        an optimiser and a norm are given; or if the norm is not above 0.
    """
    if optimiser is None:
        return adam(max_gradient_norm)
    if max_gradient_norm is not None:
        raise ValueError(
            f"max_gradient_norm ({max_gradient_norm}) must be None where an optimiser is given: "
            "chain optax.clip_by_global_norm into it"
        )
    # One update on a scalar gradient of 1 tells the sign; `optax.adam` and the like return -lr.
    with jax.ensure_compile_time_eval(), jax.numpy_dtype_promotion("standard"):
        zero = jnp.zeros(())
        direction: PyTree = optimiser.update(jnp.ones(()), optimiser.init(zero), zero)[0]
    if direction < 0:
        raise ValueError(
            "optimiser must give directions of descent before the learning rate, as "
            "optax.scale_by_adam() does; this one goes against them, as optax.adam(...) does"
        )
    return optimiser


def descend(
    optimiser: optax.GradientTransformation,
    gradients: PyTree,
    state: PyTree,
    params: PyTree,
    learning_rate: Array,
) -> tuple[PyTree, PyTree]:
    """Take one optimiser step; return the new parameters and the optimiser's new state.

    Args:
      optimiser: an optax transformation without learning-rate scaling.
      gradients: as `params`.
      state: of the optimiser.
      params: pytree of float32.
      learning_rate: [] float32.
    """
    with jax.numpy_dtype_promotion("standard"):  # optax counts steps in int32
        directions, state = optimiser.update(gradients, state, params)
    return jax.tree.map(lambda p, d: p - learning_rate * d, params, directions), state
