"""Replay buffer of the newest step of each environment, for online learning in replay loops."""

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.replay.index import make_index
from accel_rl.replay.replay import Replay, compose
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import Sampler, Span
from accel_rl.replay.store import make_store
from accel_rl.types import Array, PyTree, Transition


def newest(example: Transition, num_envs: int) -> Replay:
    """Make a replay buffer of the newest step of each environment; a sample holds all of them.

    A sample has the steps in the order of their environments, each with weight 1 and a one-step
    target. As the buffer of `train.make` it makes learning online: an agent learns from each step
    once, before it chooses the next action. Steps are added one at a time, so `rollout` must be 1;
    the smallest valid `learning_starts` is `num_envs`.

    Args:
      example: one environment's step, such as `train.example` returns; only shapes and dtypes
        matter.
      num_envs: environments that are added together, and items in a sample, E.
    """
    if example.next_observation is None:
        raise TypeError(
            "example must have a next_observation, got None: a single step has no following one to "
            "bootstrap from"
        )
    whole("num_envs", num_envs, 1)
    store = make_store(example, num_envs, num_envs=num_envs)
    return compose(make_index(store.ring, _in_order(store.ring), num_envs), store, num_envs)


def _in_order(ring: Ring) -> Sampler:
    """Return a sampler that draws every slot once, in order, without randomness or state."""

    def draw(state: PyTree, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
        slots = jnp.arange(positions.shape[0], dtype=jnp.int32)
        each = np.float32(1 / ring.capacity)
        return slots, jnp.where(slots < span.size, each, np.float32(0))

    return Sampler(
        init=lambda: (),
        scale=lambda state, priorities: (priorities > 0).astype(jnp.float32),
        assign=lambda state, slots, weights: state,
        assign_range=lambda state, first, weights: state,
        draw=draw,
        mass=lambda state, span: span.size.astype(jnp.float32),
        least=lambda state, span: jnp.float32(1 / ring.capacity),
        highest=lambda state: jnp.float32(1),
        num_words=0,
        prioritised=False,
    )
