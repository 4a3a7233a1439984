"""Checks of the searches' arguments, in Python, before anything is traced."""

import operator

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, ArrayLike

WIDTHS = (8, 16, 32)
DTYPES = tuple(np.dtype(f"uint{bits}") for bits in WIDTHS)
INT32_MAX = 2**31 - 1


def key_dtype(bits: int) -> np.dtype:
    """Return the unsigned dtype of keys with `bits` bits.

    Raises:
      ValueError: if `bits` is not 8, 16 or 32.
    """
    if bits not in WIDTHS:
        raise ValueError(f"bits must be one of {WIDTHS}, got {bits!r}")
    return DTYPES[WIDTHS.index(bits)]


def is_traced(value: ArrayLike) -> bool:
    """Return True if the value is traced, so that its numbers are not known yet."""
    return isinstance(value, jax.core.Tracer)


def as_keys(keys: ArrayLike, vector: bool = False) -> Array:
    """Check stored keys and return them as an array.

    Args:
      keys: uint8, uint16 or uint32 [...].
      vector: require exactly one axis, of at least one key.

    Raises:
      TypeError: if they have another dtype.
      ValueError: if `vector` is set and they are no such vector.
    """
    if getattr(keys, "dtype", None) not in DTYPES:
        got = getattr(keys, "dtype", type(keys).__name__)
        raise TypeError(f"keys must be an array of uint8, uint16 or uint32, got {got}")
    if vector and (keys.ndim != 1 or keys.shape[0] == 0):
        raise ValueError(f"keys must be [N] with N >= 1, got shape {keys.shape}")
    return jnp.asarray(keys)


def as_key_words(name: str, value: ArrayLike, dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    """Convert a query, mask or radius to the dtype of the keys.

    Args:
      name: name of the argument, for errors.
      value: integers of the given shape; if traced, already of the given dtype, because the range
        of traced numbers cannot be checked.
      dtype: dtype of the keys.
      shape: required shape.

    Raises:
      TypeError: if `value` is not of integers, or is traced and of another dtype.
      ValueError: if its shape is another, or a number is out of the dtype's range.
    """
    array = value if hasattr(value, "dtype") else np.asarray(value)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if array.dtype == dtype:
        return jnp.asarray(array)
    limit = np.iinfo(dtype).max
    if array.dtype == object and all(isinstance(number, int) for number in array.flat):
        raise ValueError(f"{name} must be in [0, {limit}] for {dtype} keys, got {value}")
    if not jnp.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be of integers, got {array.dtype}")
    if is_traced(array):
        raise TypeError(f"{name} must be {dtype} as the keys where it is traced, got {array.dtype}")
    numbers = np.asarray(array)
    if numbers.size and not (numbers.min() >= 0 and numbers.max() <= limit):
        raise ValueError(f"{name} must be in [0, {limit}] for {dtype} keys, got {value}")
    return jnp.asarray(numbers.astype(dtype))


def as_count(name: str, value: ArrayLike, limit: int = INT32_MAX) -> Array:
    """Convert a count to an int32 scalar; clip a traced one to [0, limit].

    Raises:
      ValueError: if it is not a scalar, or known and not in [0, limit].
    """
    dtype = getattr(value, "dtype", None)
    known = isinstance(value, int) and not isinstance(value, bool)
    if not (known if dtype is None else jnp.issubdtype(dtype, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {np.shape(value)}")
    if not is_traced(value):
        if not 0 <= int(value) <= limit:
            raise ValueError(f"{name} must be in [0, {limit}], got {value}")
        return jnp.int32(int(value))
    # Clip in the value's own dtype, before the cast: the value may not fit in int32.
    high = min(limit, int(np.iinfo(value.dtype).max))
    return jnp.clip(value, value.dtype.type(0), value.dtype.type(high)).astype(jnp.int32)


def as_static(name: str, value: int) -> int:
    """Return a positive number that fixes a shape, as an int.

    Raises:
      ValueError: if it is less than 1.
    """
    try:
        if isinstance(value, bool):
            raise TypeError("a bool is no number of things")
        number = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{name} must be a static integer, got {value!r}") from error
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {number}")
    return number


def as_lines(name: str, lines: ArrayLike) -> Array:
    """Check match lines or valid bits and return them as an array."""
    if getattr(lines, "dtype", None) != np.bool_:
        got = getattr(lines, "dtype", type(lines).__name__)
        raise TypeError(f"{name} must be an array of bool, got {got}")
    return jnp.asarray(lines)


def as_valid(valid: ArrayLike | None, shape: tuple[int, ...]) -> Array | None:
    """Check the valid bits of keys with the given shape and return them as an array, or None.

    Raises:
      TypeError: if they are not of bool.
      ValueError: if their shape is another.
    """
    if valid is None:
        return None
    lines = as_lines("valid", valid)
    if lines.shape != shape:
        raise ValueError(f"valid must have the keys' shape {shape}, got {lines.shape}")
    return lines
