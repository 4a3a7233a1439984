"""Powers of two from the bits of float32, exact where XLA's exp2 and log2 are not."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array


def exponent_of(x: Array) -> Array:
    """Return floor(log2(x)) of positive normal float32, int32."""
    pattern = jax.lax.bitcast_convert_type(x, jnp.int32)
    return (pattern >> np.int32(23)) - np.int32(127)


def power_of_two(n: Array) -> Array:
    """Return 2^n of int32 n from -126 to 127, float32."""
    return jax.lax.bitcast_convert_type((n + np.int32(127)) << np.int32(23), jnp.float32)
