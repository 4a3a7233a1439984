"""Conversion between pytrees and named NumPy arrays."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def to_host(tree: object) -> dict[str, np.ndarray]:
    """Copy a pytree's arrays to NumPy, by names such as agent.params.Dense_0.kernel.

    The copies do not alias the tree: a view would be overwritten by the next step that the tree is
    donated to, or would prevent the donation. PRNG keys are stored as their key data.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, leaf in _named(tree):
        if name in arrays:
            raise ValueError(f"two leaves are called {name}")
        arrays[name] = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf, copy=True)
    return arrays


def from_host(arrays: Mapping[str, np.ndarray], template: object) -> Any:
    """Restore a pytree from the arrays of `to_host`, as copies.

    Args:
      arrays: by name. Arrays without elements may be missing.
      template: a pytree of jax.ShapeDtypeStruct; an array gets its leaf's sharding, if any.

    Raises:
      ValueError: if an array is missing, left over or of another shape or dtype; the message has
        the first such name, and what was expected and found.
    """
    wanted = {name: _data(leaf) for name, leaf in _named(template)}
    for name in {**wanted, **arrays}:
        leaf, found = _say(wanted.get(name)), _say(arrays.get(name))
        if leaf != found and not (found == "nothing" and wanted[name].size == 0):
            raise ValueError(f"{name}: expected {leaf}, found {found}")
    leaves = [
        _placed(arrays.get(name, np.zeros(wanted[name].shape, wanted[name].dtype)), leaf)
        for name, leaf in _named(template)
    ]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _named(tree: object) -> list[tuple[str, Any]]:
    return [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf)
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


def _is_key(leaf: object) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    """Return the shape and dtype with which a leaf is stored."""
    return jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf


def _placed(array: np.ndarray, leaf: Any) -> jax.Array:
    # Copied by JAX: `device_put` alone may alias NumPy's memory, which cannot be donated.
    placed = jnp.array(array, copy=True)
    if _is_key(leaf):
        impl = jax.random.key_impl(jnp.empty((), leaf.dtype))
        placed = jax.random.wrap_key_data(placed, impl=impl)
    return jax.device_put(placed, leaf.sharding)


def _say(array: Any) -> str:
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
