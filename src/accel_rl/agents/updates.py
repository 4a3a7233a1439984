"""Updates of parameters: steps of optax optimisers, Polyak averaging, copies to target networks."""

import jax
import jax.numpy as jnp
import optax

from accel_rl.arguments import within
from accel_rl.types import Array, PyTree


def or_adam(
    optimiser: optax.GradientTransformation | None, max_gradient_norm: float | None = None
) -> optax.GradientTransformation:
    """Return the given optimiser, checked, or Adam, with gradients clipped if a norm is given.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """
    if optimiser is None:
        adam = optax.scale_by_adam()
        if max_gradient_norm is None:
            return adam
        within("max_gradient_norm", max_gradient_norm, "(0, inf]")
        return optax.chain(optax.clip_by_global_norm(max_gradient_norm), adam)
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


def polyak(online: PyTree, target: PyTree, tau: Array) -> PyTree:
    """Return the Polyak average (1 - tau) * target + tau * online.

    Args:
      online: pytree of parameters.
      target: as `online`.
      tau: [] float32 in [0, 1].

    Reference: Lillicrap et al., "Continuous control with deep reinforcement learning", ICLR 2016,
      section 3.
    """
    # In this form tau = 1 yields the online parameters exactly.
    return jax.tree.map(lambda new, old: (1 - tau) * old + tau * new, online, target)


def follow(online: PyTree, target: PyTree, updates: Array, hyper: dict[str, Array]) -> PyTree:
    """Return the target network's parameters, averaged with `tau` every `target_period` updates.

    With tau = 1 this is a periodic copy; with a period of 1, Polyak averaging at every update.

    Args:
      online: pytree of parameters after `updates` updates.
      target: as `online`.
      updates: [] int32, at least 1.
      hyper: "tau" as of `polyak`; "target_period", at least 1, truncated to an integer.

    Reference: for the copies, Mnih et al., "Human-level control through deep reinforcement
      learning", Nature 2015.
    """
    due = updates % jnp.maximum(hyper["target_period"], 1).astype(jnp.int32) == 0
    return jax.lax.cond(due, lambda: polyak(online, target, hyper["tau"]), lambda: target)
