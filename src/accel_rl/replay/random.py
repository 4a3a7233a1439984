"""Random words, and words as positions in a distribution."""

import jax.numpy as jnp
import numpy as np

from accel_rl.am.words import mixed_words, stream_seeds
from accel_rl.types import Array


def random_words(key: Array, rows: int, n: int) -> Array:
    """Independent random words [rows, n] uint32 from one key.

    A counter mixed with 96 random bits of the key's generator: in a compiled loop on a CPU that is
    several times as fast as to draw all words from it.
    """
    counter = jnp.arange((rows + 1) // 2 * n, dtype=jnp.uint32)
    words = jnp.concatenate(mixed_words(stream_seeds(key), counter))
    return words[: rows * n].reshape(rows, n)


def uniform(words: Array) -> Array:
    """float32 in [0, 1), a multiple of 2^-24, from the upper bits of uint32 words."""
    return (words >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)


def positions_of(words: Array, stratified: bool) -> Array:
    """Positions in [0, 1) from n words, float32 [n]: one in each of n equal parts if stratified."""
    if not stratified:
        return uniform(words)
    n = words.shape[0]
    positions = (jnp.arange(n, dtype=jnp.float32) + uniform(words)) * np.float32(1 / n)
    return jnp.minimum(positions, np.float32(1 - 2**-24))
