"""64-bit integers as two uint32 words, for exact sums on devices with 32-bit integers only.

All functions are elementwise.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array


class Wide(NamedTuple):
    """Signed 64-bit integer high * 2**32 + low, in two's complement."""

    high: Array  # [...] uint32
    low: Array  # [...] uint32


def from_int32(x: Array) -> Wide:
    """Sign-extend an int32."""
    high = jnp.where(x < np.int32(0), np.uint32(0xFFFFFFFF), np.uint32(0))
    return Wide(high, x.astype(jnp.uint32))


def add(x: Wide, y: Wide) -> Wide:
    """Return x + y modulo 2**64."""
    low = x.low + y.low
    return Wide(x.high + y.high + (low < x.low).astype(jnp.uint32), low)


def negate(x: Wide) -> Wide:
    """Return -x modulo 2**64."""
    return add(Wide(~x.high, ~x.low), Wide(jnp.zeros_like(x.high), jnp.ones_like(x.low)))


def shift_left(x: Wide, bits: int) -> Wide:
    """Return x * 2**bits modulo 2**64, for static bits from 0 to 31."""
    if bits == 0:
        return x
    high = (x.high << np.uint32(bits)) | (x.low >> np.uint32(32 - bits))
    return Wide(high, x.low << np.uint32(bits))


def divide_rounded(x: Wide, divisor: Array) -> Array:
    """Return x / divisor rounded to the nearest integer, halves away from zero, as int32.

    Args:
      x: the dividend.
      divisor: uint32, at least 1, with |x| / divisor below 2**32.

    Returns:
      int32, modulo 2**32 if the quotient does not fit.
    """
    negative = (x.high >> np.uint32(31)) == 1
    flipped = negate(x)
    magnitude = Wide(
        jnp.where(negative, flipped.high, x.high), jnp.where(negative, flipped.low, x.low)
    )

    def step(_: int, carry: tuple[Array, Wide]) -> tuple[Array, Wide]:
        # Restoring division: the quotient's bits enter the dividend from the right.
        rest, word = carry
        overflow = rest >> np.uint32(31)
        rest = (rest << np.uint32(1)) | (word.high >> np.uint32(31))
        fits = (overflow == 1) | (rest >= divisor)
        word = shift_left(word, 1)
        return (
            jnp.where(fits, rest - divisor, rest),
            Wide(word.high, word.low | fits.astype(jnp.uint32)),
        )

    rest, quotient = jax.lax.fori_loop(0, 64, step, (jnp.zeros_like(magnitude.low), magnitude))
    # 2 * rest >= divisor, without overflow.
    result = quotient.low + (rest >= divisor - rest).astype(jnp.uint32)
    return jnp.where(negative, ~result + np.uint32(1), result).astype(jnp.int32)
