"""Store of a replay buffer: the data of slots, and the assembly of batches from it.

The store does not depend on priorities, so it can be placed apart from the index.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.replay import ring as rings
from accel_rl.replay import views
from accel_rl.replay.ring import Cursor, Ring
from accel_rl.types import Array, ArrayLike, PyTree


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StoreState:
    """State of a store; a pytree."""

    data: PyTree  # the example's pytree, leaves [capacity, *leaf]
    cursor: Cursor


class Store(NamedTuple):
    """Pure functions over a `StoreState`."""

    init: Callable[[], StoreState]
    """init()"""

    rows: Callable[[PyTree], tuple[PyTree, int]]
    """rows(items): items checked against the example, leaves [steps * envs, *leaf], and steps."""

    write: Callable[[StoreState, PyTree, int], StoreState]
    """write(state, rows, steps): write the next steps of all environments."""

    drawable: Callable[[StoreState, PyTree, int], Array | None]
    """drawable(state, rows, steps): bool [steps, envs], True for new items that may be drawn once
    their windows are complete; None if all may."""

    gather: Callable[..., PyTree]
    """gather(state, slots [B], gamma=None): the batch; see `views`."""

    ring: Ring
    selective: bool
    """True if `drawable` may exclude items."""

    example: PyTree
    """Shapes and dtypes of an item."""

    has_env_axis: bool
    """True if added items have an axis of environments."""


def make_store(
    example: PyTree,
    capacity: int,
    *,
    num_envs: int | None = None,
    n_step: int = 1,
    sequence_length: int | None = None,
    sequence_period: int = 1,
    frame_stack: int = 1,
) -> Store:
    """Make a ring of items in arrays, time-major: one row for a step of all environments.

    Args:
      example: an item, of one environment and step.
      capacity: items stored, over all environments.
      num_envs: environments, E; None for items without that axis.
      n_step: rewards that a target sums.
      sequence_length: steps of a sequence, L; None for single steps.
      sequence_period: steps from the start of a sequence to that of the next.
      frame_stack: frames of an observation; each frame is stored once.
    """
    spec = describe(example)
    view = views.make_view(
        spec, n_step=n_step, sequence_length=sequence_length, frame_stack=frame_stack
    )
    whole("sequence_period", sequence_period, 1, 1 if sequence_length is None else None)
    ring = Ring(capacity, 1 if num_envs is None else num_envs, view.window, view.history)

    def init() -> StoreState:
        return StoreState(allocate(spec, capacity), rings.start())

    def rows(items: PyTree) -> tuple[PyTree, int]:
        return as_rows("transitions", spec, items, num_envs)

    def write(state: StoreState, items: PyTree, steps: int) -> StoreState:
        first = state.cursor.row * np.int32(ring.num_envs)
        return StoreState(
            write_rows(state.data, first, items, steps > 1),
            rings.advance(ring, state.cursor, steps),
        )

    def drawable(state: StoreState, items: PyTree, steps: int) -> Array | None:
        shape = steps, ring.num_envs
        allowed = None
        if view.drops_truncated:
            # A truncated step that also ended its episode needs no bootstrap, so it has a target.
            allowed = (~items.truncated | (items.discount <= 0)).reshape(shape)
        if sequence_period > 1:
            row = state.cursor.row + jnp.arange(steps, dtype=jnp.int32)
            row = rings.wrap(row, ring.rows)
            first = (row % np.int32(sequence_period) == 0)[:, None]
            allowed = jnp.broadcast_to(first, shape) if allowed is None else allowed & first
        return allowed

    def offset(slots: Array, steps: Array | int) -> Array:
        moved = slots + jnp.asarray(steps, jnp.int32) * np.int32(ring.num_envs)
        moved = rings.wrap(moved, capacity)
        return jnp.where(moved < 0, moved + np.int32(capacity), moved)

    def gather(state: StoreState, slots: Array, gamma: ArrayLike | None = None) -> PyTree:
        return view.gather(state.data, slots, offset, gamma)

    selective = view.drops_truncated or sequence_period > 1
    return Store(init, rows, write, drawable, gather, ring, selective, spec, num_envs is not None)


def allocate(example: PyTree, capacity: int) -> PyTree:
    """Return zeros [capacity, *leaf] for each leaf, so that an unwritten row ends an episode."""
    return jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), example)


def check_structure(argument: str, example: PyTree, items: PyTree) -> None:
    """Raise ValueError unless items have the example's structure."""
    wanted: PyTree = jax.tree.structure(example)
    found: PyTree = jax.tree.structure(items)
    if found != wanted:
        raise ValueError(f"{argument} must have the structure {wanted}, got {found}")


def describe(example: PyTree) -> PyTree:
    """Return the shapes and dtypes of an example's leaves, without its values."""
    if not jax.tree.leaves(example):
        raise ValueError(f"example must have at least one array or number, got {example!r}")
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), _dtype(leaf)), example)


def _dtype(leaf: ArrayLike) -> np.dtype:
    """Return the dtype that JAX gives an array or number."""
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    return jax.dtypes.canonicalize_dtype(dtype)


def as_rows(
    argument: str, example: PyTree, items: PyTree, num_envs: int | None
) -> tuple[PyTree, int]:
    """Flatten items to leaves [steps * envs, *leaf] of the example's dtypes; count the steps.

    Without an environment axis (`num_envs` None), items are one item or [steps]; with it, [envs] or
    [steps, envs].
    """
    envs = () if num_envs is None else (num_envs,)
    steps: set[int | None] = set()

    def row(path: PyTree, spec: PyTree, item: PyTree) -> Array:
        name = argument + jax.tree_util.keystr(path)
        shape, single = np.shape(item), (*envs, *spec.shape)
        dtype = _dtype(item)
        integers = dtype.kind in "iu" and spec.dtype.kind in "iu"
        if not np.can_cast(dtype, spec.dtype, "safe" if integers else "same_kind"):
            raise TypeError(f"{name} must have dtype {spec.dtype}, got {dtype}")
        if integers and isinstance(item, np.ndarray) and item.size:  # int64 passes as int32 in JAX
            limits = np.iinfo(spec.dtype)
            if not limits.min <= item.min() <= item.max() <= limits.max:
                raise ValueError(f"{name} must fit {spec.dtype}, got {item.min()} to {item.max()}")
        has_steps = shape[1:] == single and len(shape) == len(single) + 1
        if shape != single and not has_steps:
            batch_major = num_envs is not None and (*shape[:1], *shape[2:]) == single
            raise ValueError(
                f"{name} must have shape {single} or (steps, {str(single)[1:]}, got {shape}"
                + ("; batch_major=True takes (envs, steps, ...)" if batch_major else "")
            )
        steps.add(shape[0] if has_steps else None)
        # Counted here, as -1 stands for no number in a field without values.
        count = math.prod(shape[: len(shape) - len(spec.shape)])
        return jnp.asarray(item, spec.dtype).reshape(count, *spec.shape)

    rows = jax.tree_util.tree_map_with_path(row, example, items)
    if len(steps) > 1:
        raise ValueError(f"leaves of {argument} must have the same number of steps, got {steps}")
    (count,) = steps
    return rows, 1 if count is None else count


def write_rows(data: PyTree, first: Array, rows: PyTree, around: bool) -> PyTree:
    """Write n items into n consecutive slots from `first`, around the end only if `around`.

    To write around the end, two windows of n slots are overwritten, one at the end of the arrays
    and one at their beginning. This needs no loop and no scatter.
    """
    put = _write_around if around else jax.lax.dynamic_update_slice_in_dim

    def leaf(data: Array, new: Array) -> Array:
        return put(data, new, first, axis=0)

    return jax.tree.map(leaf, data, rows)


def _write_around(data: Array, new: Array, first: Array, axis: int) -> Array:
    n, capacity = new.shape[axis], data.shape[axis]
    start = jnp.minimum(first, np.int32(capacity - n))
    shift = first - start  # new items beyond the end
    index = jnp.arange(n, dtype=jnp.int32).reshape(-1, *[1] * (new.ndim - 1))
    rolled = jnp.roll(new, shift, axis=axis)
    data = _blend(data, rolled, index >= shift, start, axis)
    # Always 0, but not a constant: for one, XLA's CPU backend would rewrite the whole array.
    return _blend(data, rolled, index < shift, jnp.minimum(first, 0), axis)


def _blend(data: Array, new: Array, where: Array, start: Array, axis: int) -> Array:
    old = jax.lax.dynamic_slice_in_dim(data, start, new.shape[axis], axis)
    blended = jnp.where(where, new, old)
    return jax.lax.dynamic_update_slice_in_dim(data, blended, start, axis)
