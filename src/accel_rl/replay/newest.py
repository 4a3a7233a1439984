"""The newest step of each environment as a memory: on-line learning in the loops of replay."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.replay.index import make_index
from accel_rl.replay.replay import Replay, compose
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import Sampler, Span
from accel_rl.replay.store import make_store
from accel_rl.types import Array, Transition


def newest(example: Transition, num_envs: int) -> Replay:
    """A replay memory that holds the newest step of each environment and samples all of them.

    A sample has the steps in the order of their environments, each with weight 1 and the target of
    one step. As a memory of `train.make` it makes learning on-line: an agent learns from each step
    once, before the next is chosen. Steps are added one at a time, so `rollout` must be 1; the
    least `learning_starts` is `num_envs`.

    Args:
      example: one environment's step, of which only shapes and dtypes matter, such as
        `train.example` gives.
      num_envs: environments that are added together, and items in a sample, E.

    Raises:
      TypeError: if the example is no `Transition` with a `next_observation`, or a field of it has
        the wrong dtype; if `num_envs` is no int.
      ValueError: if `num_envs` is out of range, or a scalar field of the example is none.
    """
    if not isinstance(example, Transition):
        raise TypeError(f"example must be a types.Transition, got {type(example).__name__}")
    if example.next_observation is None:
        raise TypeError(
            "example must have a next_observation, got None: a single step has no following one to "
            "bootstrap from"
        )
    whole("num_envs", num_envs, 1)
    store = make_store(example, num_envs, num_envs=num_envs)
    return compose(make_index(store.ring, _in_order(store.ring), num_envs), store, num_envs)


def _in_order(ring: Ring) -> Sampler:
    """Draws every slot once, in order: nothing is random, and there is nothing to remember."""

    def draw(state: Any, span: Span, positions: Array, words: Array) -> tuple[Array, Array]:
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
