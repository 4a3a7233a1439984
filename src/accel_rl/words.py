"""Random 32-bit words: many from one PRNG key, and numbers made of them, without 64-bit types."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array

SEEDS = 3  # seed words of a stream of mixed words


def high_product(a: Array, b: Array) -> Array:
    """Return the high word of the 64-bit product of uint32 words, from 16-bit halves.

    If `a` is a random word, the result is a number in [0, b), each within 2**-32 of equal
    probability.
    """
    mask, shift = np.uint32(0xFFFF), np.uint32(16)
    a_high, a_low, b_high, b_low = a >> shift, a & mask, b >> shift, b & mask
    middle = a_high * b_low + ((a_low * b_low) >> shift)
    carry = (middle & mask) + a_low * b_high
    return a_high * b_high + (middle >> shift) + (carry >> shift)


def unit_float(words: Array) -> Array:
    """Convert the upper bits of uint32 words to float32 in [0, 1), multiples of 2^-24."""
    return (words >> np.uint32(8)).astype(jnp.float32) * np.float32(2**-24)


def stream_seeds(key: Array) -> Array:
    """Draw the seeds of a stream, uint32 [SEEDS], from a PRNG key."""
    return jax.random.bits(key, (SEEDS,), jnp.uint32)


def mixed_words(seeds: Array, counter: Array) -> tuple[Array, Array]:
    """Return two independent words for each number of a counter.

    The counter is multiplied by the golden-ratio constant, offset, mixed, offset again and mixed
    again. With two offsets, streams coincide only if 64 bits of their seeds agree.

    Args:
      seeds: uint32 [SEEDS].
      counter: uint32 [...].

    Returns:
      uint32 [...] twice; the second costs nothing if it is not used.
    """
    spread = mix(counter * np.uint32(0x9E3779B9) + seeds[0])
    return mix(spread ^ seeds[1]), mix(spread ^ seeds[2])


def mix(x: Array) -> Array:
    """Mix the bits of uint32 words bijectively.

    Reference: the 32-bit finaliser of MurmurHash3 (Appleby).
    """
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))
