"""Keys: non-negative numbers as unsigned integers in the same order, as TCAM cells store them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from accel_rl.am.operands import as_keys, is_traced, key_dtype
from accel_rl.arguments import one_of
from accel_rl.types import Array, ArrayLike

FORMS = ("fixed", "float")


def encode(
    values: ArrayLike,
    maximum: ArrayLike = 1.0,
    *,
    bits: int = 16,
    form: str = "fixed",
    checked: bool = False,
) -> Array:
    """Encode non-negative numbers as keys: a larger number never has a smaller key.

    "fixed" keys are evenly spaced: with x = clip(value / maximum, 0, 1) in float32 (XLA's division,
    but exactly 1 from `maximum` on), the key is the integer nearest to x * (2**bits - 1), exact for
    every width; the only tie, x = 1/2, rounds up.
    "float" keys are evenly spaced in relative terms: the top `bits` bits of the float32 pattern
    without its sign. 8 bits hold the exponent, 16 add 8 bits of the fraction, and 32 hold the whole
    pattern and a 0. Don't-care bits then cover about the same ratio everywhere.

    Args:
      values: real [...], converted to float32; infinity is allowed.
      maximum: real, broadcast with `values`; the number with the largest "fixed" key. No effect on
        "float".
      bits: 8, 16 or 32, static.
      form: "fixed" or "float", static.
      checked: let `checkify.checkify` report negative numbers and NaN among traced values, static.
        Each call of a compiled function is then slower, with or without checkify.

    Returns:
      uint8, uint16 or uint32 [...]. If `values` is traced, negative numbers and NaN get key 0, as
        does any ratio that is NaN.
    """
    dtype = key_dtype(bits)
    one_of("form", form, FORMS)
    _check_maximum(maximum)
    x = _as_float32(values)
    bad = jnp.isnan(x) | (x < 0)
    if is_traced(values):
        if checked:
            checkify.debug_check(~jnp.any(bad), "values must be non-negative numbers to be encoded")
    else:
        known = np.asarray(values)
        if not (known >= 0).all():
            raise ValueError(f"values must be non-negative numbers, got {known[~(known >= 0)][0]}")
    if form == "float":
        pattern = jax.lax.bitcast_convert_type(x, jnp.uint32) << np.uint32(1)
        return jnp.where(bad, np.uint32(0), pattern >> np.uint32(32 - bits)).astype(dtype)
    top = _as_float32(maximum)
    # XLA divides by a scalar through its reciprocal, which may make maximum / maximum below 1.
    return _nearest(jnp.where(x >= top, np.float32(1), x / top), bits).astype(dtype)


def decode(keys: ArrayLike, maximum: ArrayLike = 1.0, *, form: str = "fixed") -> Array:
    """Return a number that `encode` maps to each key.

    "fixed": key / (2**bits - 1) * maximum, at most half a step from every number with that key;
    from 32-bit keys, as near as float32 allows. "float": the smallest number with that key, from
    which the others differ by less than a factor of 2 (8 bits), 1 + 2**-8 (16 bits) or not at all
    (32 bits); denormals, below 1.2e-38, are coarser, and keys above that of infinity give NaN.

    Args:
      keys: uint8, uint16 or uint32 [...].
      maximum: real, broadcast with `keys`; as for `encode`.
      form: "fixed" or "float", static.

    Returns:
      float32 [...].
    """
    stored = as_keys(keys)
    one_of("form", form, FORMS)
    _check_maximum(maximum)
    bits = 8 * stored.dtype.itemsize
    if form == "float":
        pattern = (stored.astype(jnp.uint32) << np.uint32(32 - bits)) >> np.uint32(1)
        return jax.lax.bitcast_convert_type(pattern, jnp.float32)
    fraction = stored.astype(jnp.float32) / np.float32(2**bits - 1)
    return fraction * _as_float32(maximum)


def _nearest(ratio: Array, bits: int) -> Array:
    """Return the integer nearest to clip(ratio, 0, 1) * (2**bits - 1), as uint32; 0 for NaN.

    ratio * 2**bits is exact in float32. So are its floor and, near the thresholds of the two
    comparisons, both differences. Only subtracting `ratio` itself would round.
    """
    x = jnp.where(ratio > 0, ratio, np.float32(0))
    scaled = jnp.where(x < 1, x, np.float32(0)) * np.float32(2**bits)
    whole = jnp.floor(scaled)
    rest = scaled - whole
    half = np.float32(0.5)
    up = (rest - half > x).astype(jnp.uint32)
    down = (x - half > rest).astype(jnp.uint32)
    return jnp.where(x < 1, whole.astype(jnp.uint32) + up - down, np.uint32(2**bits - 1))


def _as_float32(values: ArrayLike) -> Array:
    if isinstance(values, jax.Array):
        return values.astype(jnp.float32)
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinity
        return jnp.asarray(np.asarray(values, np.float32))


def _check_maximum(maximum: ArrayLike) -> None:
    if is_traced(maximum):
        return
    with np.errstate(over="ignore"):
        known = np.asarray(maximum, np.float32)
    if not (np.isfinite(known).all() and (known > 0).all()):
        raise ValueError(f"maximum must be positive and finite in float32, got {maximum}")
