"""Random words, and their conversion to positions in a distribution."""

import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array
from accel_rl.words import mixed_words, stream_seeds, unit_float


def random_words(key: Array, rows: int, n: int) -> Array:
    """Draw independent random words [rows, n] uint32 from one PRNG key.

    A counter is mixed with 96 random bits from the key's generator. In a compiled loop on a CPU
    this is several times as fast as drawing all words from the generator.
    """
    counter = jnp.arange((rows + 1) // 2 * n, dtype=jnp.uint32)
    words = jnp.concatenate(mixed_words(stream_seeds(key), counter))
    return words[: rows * n].reshape(rows, n)


def positions_of(words: Array, stratified: bool) -> Array:
    """Convert n words to positions in [0, 1), float32 [n]; one in each of n parts if stratified."""
    if not stratified:
        return unit_float(words)
    n = words.shape[0]
    positions = (jnp.arange(n, dtype=jnp.float32) + unit_float(words)) * np.float32(1 / n)
    # The sum of a large n and a fraction may round up to the next whole number, the last to 1.
    return jnp.minimum(positions, np.float32(1 - 2**-24))
