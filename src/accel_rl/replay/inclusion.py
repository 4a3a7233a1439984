"""Probabilities that AMPER-fr's candidate set includes an item, in closed form.

Priorities are fractions x of the end of the groups' range. Each of m groups draws its
representative value V uniformly from its m-th of [0, 1] and includes x if a set around V contains
x. The sets of different groups are independent, so the probability is 1 - prod_g (1 - P_g(x)),
where P_g(x) is the probability over the group's values V that the set around V contains x. Keys are
treated as real numbers, because their steps are small compared with the sets.
"""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array


def ball(x: Array, reach: Array, groups: int) -> Array:
    """Return inclusion probabilities for balls |x - V| <= reach * V.

    Args:
      x: [n] float32, in [0, 1].
      reach: float32, radius over value; at most 1 / groups.
      groups: m.

    Returns:
      Probabilities [n] float32.
    """
    low = x / (1 + reach)
    high = x / jnp.maximum(1 - reach, np.float32(1e-6))
    low, high = _within_groups(low, high, x, groups)
    return _union(jnp.maximum(high - low, 0) * groups)


def block(x: Array, reach: Array, groups: int) -> Array:
    """Return inclusion probabilities for aligned blocks that contain V.

    x is in the block of V if they agree except in the bits from the highest bit of reach * V
    downwards. The width of the block is the power of two in (reach * V, 2 * reach * V]. Arguments
    are those of `ball`.
    """
    width = _widths(2 * reach * x, groups, most=1)
    low, high = _aligned(x[:, None], width)
    low = jnp.maximum(low, width / 2 / reach)
    high = jnp.minimum(high, width / reach)
    low, high = _within_groups(low, high, x[:, None], groups)
    return _union(jnp.maximum(high - low, 0).sum(axis=-2) * groups)


def dithered_block(x: Array, reach: Array, groups: int) -> Array:
    """Return inclusion probabilities for aligned blocks of random width with mean 2 * reach * V.

    As `block`, except that the width is one of the two powers of two around 2 * reach * V.
    """
    width = _widths(2 * reach * x, groups, most=2)
    low, high = _aligned(x[:, None], width)

    def integral(smallest: Array, largest: Array, slope: Array, constant: int) -> Array:
        """Integrate slope * V + constant over values V with 2 * reach * V between these two."""
        a, b = _within_groups(
            jnp.maximum(low, smallest / 2 / reach),
            jnp.minimum(high, largest / 2 / reach),
            x[:, None],
            groups,
        )
        b = jnp.maximum(a, b)
        return (slope * (a + b) / 2 + constant) * (b - a)

    slope = 2 * reach / width[..., None]
    covered = integral(width, 2 * width, -slope, 2) + integral(width / 2, width, 2 * slope, -1)
    return _union(covered.sum(axis=-2) * groups)


def _widths(x: Array, groups: int, most: int) -> Array:
    """Return the powers of two that a block's width can be if it is about `x`, [n, k]."""
    # With 8 groups or more, V and x differ by less than a factor of 2 if they share a block.
    around = np.arange(-1 if groups >= 8 else -4, most + 1 if groups >= 8 else most + 4)
    exponent = exponent_of(jnp.maximum(x, np.float32(1e-30)))
    return power_of_two(exponent[:, None] + around.astype(np.int32))


def _aligned(x: Array, width: Array) -> tuple[Array, Array]:
    # x = 1, the largest key, belongs to the last block.
    low = jnp.floor(jnp.minimum(x, np.float32(1 - 2**-24)) / width) * width
    return low, low + width


def _within_groups(low: Array, high: Array, x: Array, groups: int) -> tuple[Array, Array]:
    """Clip intervals [...] to each group whose sets can contain x, [..., k]."""
    if groups <= 9:
        group = jnp.arange(groups, dtype=jnp.float32)
    else:
        own = jnp.floor(x * groups)
        group = own[..., None] + np.arange(-4, 5, dtype=np.float32)
    start = jnp.clip(group, 0, groups) / groups
    end = jnp.clip(group + 1, 0, groups) / groups
    return jnp.maximum(low[..., None], start), jnp.minimum(high[..., None], end)


def _union(probabilities: Array) -> Array:
    return 1 - jnp.prod(1 - jnp.clip(probabilities, 0, 1), axis=-1)


def exponent_of(x: Array) -> Array:
    """Return floor(log2(x)) of positive normal float32, int32."""
    # From the bits: XLA's log2 and exp2 are not exact for powers of two.
    pattern = jax.lax.bitcast_convert_type(x, jnp.int32)
    return (pattern >> np.int32(23)) - np.int32(127)


def power_of_two(n: Array) -> Array:
    """Return 2^n of int32 n from -126 to 127, float32."""
    return jax.lax.bitcast_convert_type((n + np.int32(127)) << np.int32(23), jnp.float32)
