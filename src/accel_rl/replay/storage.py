"""Arrays of slots, written row after row around a ring, each leaf in its own dtype."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, ArrayLike, PyTree


def allocate(example: PyTree, capacity: int) -> PyTree:
    """Return zeros [capacity, *leaf] for each leaf, so that an unwritten row ends an episode."""
    return jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), example)


def describe(example: PyTree) -> PyTree:
    """Return the shapes and dtypes of an example's leaves, without its values."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), _dtype(leaf)), example)


def _dtype(leaf: ArrayLike) -> np.dtype:
    """Return the dtype that JAX gives an array or number."""
    return jax.dtypes.canonicalize_dtype(getattr(leaf, "dtype", None) or np.asarray(leaf).dtype)


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
        whole = dtype.kind in "iu" and spec.dtype.kind in "iu"
        if not np.can_cast(dtype, spec.dtype, "safe" if whole else "same_kind"):
            raise TypeError(f"{name} must have dtype {spec.dtype}, got {dtype}")
        chunk = shape[1:] == single and len(shape) == len(single) + 1
        if shape != single and not chunk:
            raise ValueError(
                f"{name} must have shape {single} or (steps, {str(single)[1:]}, got {shape}"
            )
        steps.add(shape[0] if chunk else None)
        return jnp.asarray(item, spec.dtype).reshape(-1, *spec.shape)

    rows = jax.tree_util.tree_map_with_path(row, example, items)
    if len(steps) > 1:
        raise ValueError(f"leaves of {argument} must have the same number of steps, got {steps}")
    (count,) = steps
    return rows, 1 if count is None else count


def write(data: PyTree, first: Array, rows: PyTree, around: bool) -> PyTree:
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
