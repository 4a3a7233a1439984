"""32-bit random generator of all drivers of tabular training: a hashed key, then an LCG.

It exists because DPU kernels have neither threefry nor 64-bit products. All arithmetic is uint32
with wrap-around.
"""

import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, ArrayLike
from accel_rl.words import mix

MULTIPLIER = 1664525
INCREMENT = 1013904223
ORDER_STREAM = 1  # draws that order the rows of a pass
ACTION_STREAM = 2  # draws that a rule makes for each row
_JUMP = 1024  # positions are split into high * _JUMP + low to reach any draw in two steps


def stream_key(seed: ArrayLike, pass_index: ArrayLike, dpu: ArrayLike, stream: int) -> Array:
    """Hash seed, pass, global DPU index and stream number to the starting state of a stream.

    Args:
      seed: uint32.
      pass_index: uint32, counted from 0 over the whole training.
      dpu: uint32, the DPU's global index.
      stream: ORDER_STREAM or ACTION_STREAM.

    Returns:
      uint32, broadcast over the arguments.
    """
    key = hash32(jnp.asarray(seed, jnp.uint32))
    for word in (pass_index, dpu, np.uint32(stream)):
        key = hash32(key ^ jnp.asarray(word, jnp.uint32))
    return key


def hash32(x: Array) -> Array:
    """Mix uint32 words bijectively, after a golden-ratio offset so that 0 does not map to 0."""
    return mix(x + np.uint32(0x9E3779B9))


def lcg_next(state: Array) -> Array:
    """Return the next state and draw: state * 1664525 + 1013904223 modulo 2**32.

    Reference: Press et al., Numerical Recipes, 2nd edition, section 7.1 (a full-period generator).
    """
    return state * np.uint32(MULTIPLIER) + np.uint32(INCREMENT)


def lcg_draws(key: Array, count: int) -> Array:
    """Compute draws 1 to `count` of each stream, by jumping ahead instead of stepping.

    Args:
      key: uint32 [...], the streams' starting states.
      count: number of draws, static.

    Returns:
      uint32 [..., count].
    """
    low_factor, low_offset = _powers(_JUMP, stride=1)
    highs = -(-count // _JUMP)
    high_factor, high_offset = _powers(highs, stride=_JUMP)
    start = lcg_next(key)[..., None] * high_factor + high_offset
    draws = start[..., None] * low_factor + low_offset
    return draws.reshape(*key.shape, highs * _JUMP)[..., :count]


def below(draw: Array, n: Array) -> Array:
    """Map the high 16 bits of a draw to an index in [0, n), without a 64-bit product.

    Args:
      draw: uint32.
      n: uint32, 1 to 65,536. An index's probability is off by at most 1 / 65,536.
    """
    return ((draw >> np.uint32(16)) * n) >> np.uint32(16)


def _powers(count: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors and offsets that advance a state by 0, stride, 2 * stride, ... steps."""
    factor, offset = 1, 0
    for _ in range(stride):
        factor, offset = factor * MULTIPLIER % 2**32, (offset * MULTIPLIER + INCREMENT) % 2**32
    factors, offsets = [1], [0]
    for _ in range(count - 1):
        factors.append(factors[-1] * factor % 2**32)
        offsets.append((offsets[-1] * factor + offset) % 2**32)
    return np.asarray(factors, np.uint32), np.asarray(offsets, np.uint32)
