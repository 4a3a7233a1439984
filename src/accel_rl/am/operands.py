"""Checks of the searches' arguments, in Python, before anything is traced."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import require_array, whole
from accel_rl.types import Array, ArrayLike

WIDTHS = (8, 16, 32)
DTYPES = tuple(np.dtype(f"uint{bits}") for bits in WIDTHS)
INT32_MAX = 2**31 - 1


def key_dtype(bits: int) -> np.dtype:
    """Return the unsigned dtype of keys with `bits` bits."""
    if bits not in WIDTHS:
        raise ValueError(f"bits must be one of {WIDTHS}, got {bits!r}")
    return DTYPES[WIDTHS.index(bits)]


def is_traced(value: ArrayLike) -> bool:
    """Return True if the value is traced, so that its numbers are not known yet."""
    return isinstance(value, jax.core.Tracer)


def as_keys(keys: ArrayLike) -> Array:
    """Return stored keys, uint8, uint16 or uint32, as an array."""
    if getattr(keys, "dtype", None) not in DTYPES:
        got = getattr(keys, "dtype", type(keys).__name__)
        raise TypeError(f"keys must be an array of uint8, uint16 or uint32, got {got}")
    return jnp.asarray(keys)


def as_key_words(name: str, value: ArrayLike, dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    """Convert a query, mask or radius to the dtype of the keys.

    Args:
      name: name of the argument, for errors.
      value: integers of the given shape in the dtype's range; if traced, already of the given
        dtype, because the range of traced numbers cannot be checked.
      dtype: dtype of the keys.
      shape: required shape.
    """
    array = value if hasattr(value, "dtype") else np.asarray(value)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype == dtype:
        return jnp.asarray(array)
    if is_traced(array) or not jnp.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be of integers, of {dtype} if traced, got {array.dtype}")
    numbers, limit = np.asarray(array), np.iinfo(dtype).max
    if not ((numbers >= 0) & (numbers <= limit)).all():
        raise ValueError(f"{name} must be in [0, {limit}] for {dtype} keys, got {value}")
    return jnp.asarray(numbers.astype(dtype))


def as_count(name: str, value: ArrayLike, limit: int = INT32_MAX) -> Array:
    """Convert an integer scalar in [0, limit] to int32; clip a traced one to that range."""
    if not is_traced(value):
        return jnp.int32(whole(name, value, 0, limit))
    # Clip in the value's own dtype, before the cast: the value may not fit in int32.
    high = min(limit, int(np.iinfo(value.dtype).max))
    return jnp.clip(value, value.dtype.type(0), value.dtype.type(high)).astype(jnp.int32)


def as_vector(name: str, values: ArrayLike, dtype: type) -> Array:
    """Return match lines or packed words, [N] of a dtype, as an array."""
    require_array(name, values, dtype, (np.size(values),))
    return jnp.asarray(values)


def as_valid(valid: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    """Return the valid bits of keys with the given shape as an array, or None."""
    if valid is None:
        return None
    require_array("valid", valid, np.bool_, shape)
    return jnp.asarray(valid)
