"""Updates of target networks: Polyak averaging and periodic copies."""

import jax
import jax.numpy as jnp

from accel_rl.types import Array, PyTree


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
