"""Updates of parameters: steps of optax optimisers, Polyak averaging, copies to target networks."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import optax

from accel_rl.agents.hyperparameters import Limits
from accel_rl.arguments import within
from accel_rl.types import Array, PyTree

# Hyper-parameters of `Optimiser.descend`, which every agent with networks has.
OPTIMISATION = {
    "learning_rate_end": Limits(1, 0, 1, "share of the learning rate that is left in the end"),
    "learning_rate_updates": Limits(1e6, 1, 1e12, "updates over which it falls, linearly"),
    "weight_decay": Limits(0, 0, 1, "share of each weight that a learning rate of 1 takes away"),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OptimiserState:
    """State of an optimiser, with its number of steps; a pytree."""

    inner: PyTree  # of the optax transformation
    steps: Array  # [] int32


@dataclasses.dataclass(frozen=True)
class Optimiser:
    """Optimiser of an agent's networks."""

    transformation: optax.GradientTransformation  # without learning-rate scaling

    def init(self, params: PyTree) -> OptimiserState:
        """Return the state before the first step."""
        return OptimiserState(self.transformation.init(params), jnp.int32(0))

    def descend(
        self,
        gradients: PyTree,
        state: OptimiserState,
        params: PyTree,
        learning_rate: Array,
        hyper: Mapping[str, Array],
    ) -> tuple[PyTree, OptimiserState]:
        """Take one step; return the new parameters and the optimiser's new state.

        Args:
          gradients: as `params`.
          state: of the optimiser.
          params: pytree of float32. Scalars do not decay.
          learning_rate: [] float32, at the first step.
          hyper: of `OPTIMISATION`, [] float32 each.

        Reference: for the weight decay, Loshchilov and Hutter, "Decoupled weight decay
          regularization", ICLR 2019, algorithm 2.
        """
        with jax.numpy_dtype_promotion("standard"):  # optax counts steps in int32
            directions, inner = self.transformation.update(gradients, state.inner, params)
        done = jnp.minimum(state.steps.astype(jnp.float32) / hyper["learning_rate_updates"], 1)
        # In this form an end of 1 leaves the rate as it is, to the bit.
        rate = learning_rate * (1 + (hyper["learning_rate_end"] - 1) * done)

        def step(value: Array, direction: Array) -> Array:
            if value.ndim == 0:
                return value - rate * direction
            return value - rate * (direction + hyper["weight_decay"] * value)

        params = jax.tree.map(step, params, directions)
        return params, OptimiserState(inner, state.steps + np.int32(1))


def make_optimiser(
    transformation: optax.GradientTransformation | None, max_gradient_norm: float | None = None
) -> Optimiser:
    """Make the optimiser of an optax transformation, checked, or of Adam if it is None.

    Args:
      transformation: without learning-rate scaling.
      max_gradient_norm: global norm to which gradients are clipped; None: no clipping.

    Reference: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """
    given = optax.scale_by_adam()
    if transformation is not None:
        given = transformation
        # One update on a scalar gradient of 1 tells the sign; `optax.adam` and the like return -lr.
        with jax.ensure_compile_time_eval(), jax.numpy_dtype_promotion("standard"):
            zero = jnp.zeros(())
            direction: PyTree = given.update(jnp.ones(()), given.init(zero), zero)[0]
        if direction < 0:
            raise ValueError(
                "optimiser must give directions of descent before the learning rate, as "
                "optax.scale_by_adam() does; this one goes against them, as optax.adam(...) does"
            )
    if max_gradient_norm is not None:
        within("max_gradient_norm", max_gradient_norm, "(0, inf]")
        given = optax.chain(optax.clip_by_global_norm(max_gradient_norm), given)
    return Optimiser(given)


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
