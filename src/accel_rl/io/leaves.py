"""A pytree as named NumPy arrays, and back."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def to_host(tree: Any) -> dict[str, np.ndarray]:
    """Copies of a pytree's arrays by name, such as agent.params.Dense_0.kernel.

    They share no memory with the tree: a view would be overwritten by the next step that is given
    the tree's memory, or keep it from getting that memory. Random keys are given as their data.

    Raises:
      ValueError: if two leaves have the same name.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, leaf in _named(tree):
        if name in arrays:
            raise ValueError(f"two leaves are called {name}")
        arrays[name] = np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf, copy=True)
    return arrays


def from_host(arrays: Mapping[str, np.ndarray], template: Any) -> Any:
    """The pytree that `to_host` made arrays of, in memory of its own.

    Args:
      arrays: by name. Those without elements may be missing.
      template: a pytree of jax.ShapeDtypeStruct; where one has a sharding, the array gets it.

    Raises:
      ValueError: if an array is missing, left over or of another shape or dtype; the message has
        the first one's name, and what was expected and found.
    """
    wanted = {name: _data(leaf) for name, leaf in _named(template)}
    for name, leaf in wanted.items():
        found = arrays.get(name)
        if found is None and leaf.size == 0:
            continue
        if found is None or (found.shape, found.dtype) != (leaf.shape, leaf.dtype):
            raise ValueError(f"{name}: expected {_say(leaf)}, found {_say(found)}")
    for name, found in arrays.items():
        if name not in wanted:
            raise ValueError(f"{name}: expected nothing, found {_say(found)}")
    leaves = [
        _placed(arrays.get(name, np.zeros(wanted[name].shape, wanted[name].dtype)), leaf)
        for name, leaf in _named(template)
    ]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def _named(tree: Any) -> list[tuple[str, Any]]:
    return [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf)
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


def _is_key(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    """The shape and dtype that a leaf is stored with."""
    return jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf


def _placed(array: np.ndarray, leaf: Any) -> jax.Array:
    # A copy that JAX made: what `device_put` makes may be NumPy's memory, which cannot be given on.
    placed = jnp.array(array, copy=True)
    if _is_key(leaf):
        impl = jax.random.key_impl(jnp.empty((), leaf.dtype))
        placed = jax.random.wrap_key_data(placed, impl=impl)
    return jax.device_put(placed, leaf.sharding)


def _say(array: Any) -> str:
    return "nothing" if array is None else f"{array.dtype}{list(array.shape)}"
