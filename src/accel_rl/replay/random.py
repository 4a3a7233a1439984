"""Random words as positions in a distribution; one call of the generator serves a whole sample."""

import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array


def uniform(words: Array) -> Array:
    """float32 in [0, 1), a multiple of 2^-24, from the upper bits of uint32 words."""
    return (words >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)


def stratified(words: Array) -> Array:
    """One position in each of n equal parts of [0, 1), from n words; float32 [n]."""
    n = words.shape[0]
    positions = (jnp.arange(n, dtype=jnp.float32) + uniform(words)) * np.float32(1 / n)
    return jnp.minimum(positions, np.float32(1 - 2**-24))
