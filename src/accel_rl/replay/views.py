"""Batch views of stored slots: items as they were added, n-step transitions, or sequences."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import require_array, whole
from accel_rl.replay.n_step import n_step as n_step_return
from accel_rl.types import Array, ArrayLike, Batch, PyTree, Sequences, Transition

Offset = Callable[[Array, Array | int], Array]
"""offset(slots, rows): slots of the same environments that many rows later, around the end."""


class View(NamedTuple):
    """Function that assembles a batch from slots, and the rows that an item needs."""

    gather: Callable[[PyTree, Array, Offset, ArrayLike | None], PyTree]
    """gather(data, slots [B], offset, gamma): the batch."""

    window: int = 1
    """Steps that an item spans, from its own on."""

    history: int = 0
    """Steps before its own that an item needs."""

    drops_truncated: bool = False
    """True if truncated steps have no target, because their final observations are not stored."""


def make_view(
    example: PyTree, *, n_step: int = 1, sequence_length: int | None = None, frame_stack: int = 1
) -> View:
    """Make the view of items like `example`, of which only shapes and dtypes matter."""
    whole("n_step", n_step, 1)
    whole("frame_stack", frame_stack, 1)
    if sequence_length is not None:
        whole("sequence_length", sequence_length, 1)
    if sequence_length is not None and n_step > 1:
        raise ValueError(
            "n_step is for single transitions: take replay.n_step over the steps of a sequence"
        )
    if isinstance(example, Transition):
        for name in ("reward", "discount"):
            require_array(f"example.{name}", getattr(example, name), np.float32, ())
        if example.truncated is not None:
            require_array("example.truncated", example.truncated, np.bool_, ())
    elif n_step > 1 or frame_stack > 1:
        raise TypeError(
            "n_step and frame_stack need items of type accel_rl.types.Transition, got "
            f"{type(example).__name__}"
        )
    if sequence_length is not None:
        return _sequences(example, sequence_length, frame_stack)
    if isinstance(example, Transition):
        return _transitions(example, n_step, frame_stack)
    return View(lambda data, slots, offset, gamma: _at(data, slots))


def _transitions(example: Transition, n: int, depth: int) -> View:
    final = example.next_observation is not None
    may_truncate = example.truncated is not None

    def gather(data: Transition, slots: Array, offset: Offset, gamma: ArrayLike | None) -> Batch:
        if gamma is None:
            raise TypeError("sample needs gamma, the discount factor, to make targets")
        window = jnp.stack([offset(slots, j) for j in range(n)], axis=-1)
        reward, discount, truncated = _at((data.reward, data.discount, data.truncated), window)
        mapped = 0 if may_truncate else None
        result = jax.vmap(n_step_return, in_axes=(0, 0, mapped, None, None))(
            reward, discount, truncated, jnp.asarray(gamma, jnp.float32), final
        )
        last = offset(slots, result.steps - np.int32(1))
        if final:
            next_observation = _observe_after(data, last, offset, depth)
        else:
            next_observation = _observe(data, offset(last, 1), offset, depth)
        return Batch(
            _observe(data, slots, offset, depth),
            _at(data.action, slots),
            result.reward,
            result.discount,
            next_observation,
            _at(data.extras, slots),
        )

    # Without final observations, that of the row behind the window is the next observation.
    return View(gather, n + (not final), depth - 1, may_truncate and not final)


def _sequences(example: PyTree, length: int, depth: int) -> View:
    def gather(data: PyTree, slots: Array, offset: Offset, gamma: ArrayLike | None) -> Sequences:
        window = jnp.stack([offset(slots, j) for j in range(length)], axis=-1)
        steps = _at(data, window)
        if not isinstance(example, Transition):
            return Sequences(steps, jnp.ones(window.shape, bool))
        if depth > 1:
            steps = dataclasses.replace(steps, observation=_observe(data, window, offset, depth))
            if example.next_observation is not None:
                after = _observe_after(data, window, offset, depth)
                steps = dataclasses.replace(steps, next_observation=after)
        stops = episode_ends(steps.discount, steps.truncated)
        # Without its own: the step that ends an episode belongs to it.
        before = jnp.cumsum(stops, axis=-1, dtype=jnp.int32) - stops.astype(jnp.int32)
        return Sequences(steps, before == 0)

    return View(gather, length, depth - 1)


def _observe(data: Transition, slots: Array, offset: Offset, depth: int) -> PyTree:
    """Return the observations of steps, stacked on the axis after those of `slots`."""
    if depth == 1:
        return _at(data.observation, slots)

    def ended(slots: Array) -> Array:
        return episode_ends(*_at((data.discount, data.truncated), slots))

    return _at(data.observation, stacked_slots(ended, slots, depth, offset))


def _observe_after(data: Transition, slots: Array, offset: Offset, depth: int) -> PyTree:
    """Return the observations that followed steps, in the same episodes."""
    frame = _at(data.next_observation, slots)
    if depth == 1:
        return frame
    return push(_observe(data, slots, offset, depth), frame, slots.ndim)


def _at(data: PyTree, slots: Array) -> PyTree:
    return jax.tree.map(lambda leaf: leaf.at[slots].get(mode="promise_in_bounds"), data)


def stacked_slots(
    ended: Callable[[Array], Array], slots: Array, depth: int, offset: Offset
) -> Array:
    """Return the slots of the newest `depth` frames at each slot, oldest first.

    Frames before the episode's first repeat that first frame, as Gymnasium pads.

    Args:
      ended: maps slots to bool, True if the episode stopped after the step.
      slots: [...] int32.
      depth: frames in a stack.
      offset: see `Offset`.

    Returns:
      int32 [..., depth].
    """
    back = jnp.zeros_like(slots)  # rows back to the oldest frame found so far
    stack = [slots]
    inside = jnp.ones_like(slots, bool)
    for j in range(1, depth):
        inside &= ~ended(offset(slots, -j))
        back += inside.astype(jnp.int32)
        stack.append(offset(slots, -back))
    return jnp.stack(stack[::-1], axis=-1)


def push(stack: PyTree, frame: PyTree, axis: int) -> PyTree:
    """Append one frame to stacks with their depth on `axis`, and drop the oldest frame."""

    def leaf(old: Array, new: Array) -> Array:
        kept = jax.lax.slice_in_dim(old, 1, old.shape[axis], axis=axis)
        return jnp.concatenate([kept, jnp.expand_dims(new, axis)], axis=axis)

    return jax.tree.map(leaf, stack, frame)


def episode_ends(discount: Array, truncated: Array | None) -> Array:
    """Return a mask of the steps after which the episode stopped, bool as `discount`."""
    ended = discount == np.float32(0)
    return ended if truncated is None else ended | truncated
