"""Match lines: counting, packing 32 to a word, and draws without a list of the matches."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.am.operands import as_vector
from accel_rl.arguments import integer, require_array, whole
from accel_rl.types import Array, ArrayLike
from accel_rl.words import high_product

_WORD = 32


def count(matches: ArrayLike) -> Array:
    """Count the match lines that are set, as int32.

    Args:
      matches: bool [N].
    """
    lines = as_vector("matches", matches, np.bool_)
    # Four lines at a time: twice as fast on CPU as a sum of bools.
    fours = jnp.pad(lines, (0, -lines.shape[0] % 4)).astype(jnp.uint8).reshape(-1, 4)
    return jnp.sum(_set_bits(jax.lax.bitcast_convert_type(fours, jnp.uint32)), dtype=jnp.int32)


def count_packed(words: ArrayLike) -> Array:
    """Count the match lines that are set in packed words, as int32.

    Args:
      words: uint32 [W], from `pack`.
    """
    return jnp.sum(_set_bits(as_vector("words", words, np.uint32)), dtype=jnp.int32)


def pack(matches: ArrayLike) -> Array:
    """Pack match lines into words: line i is bit i % 32 of word i // 32.

    Args:
      matches: bool [N].

    Returns:
      uint32 [ceil(N / 32)]; the last word's unused bits are 0.
    """
    lines = as_vector("matches", matches, np.bool_)
    rows = jnp.pad(lines, (0, -lines.shape[0] % _WORD)).reshape(-1, _WORD)
    return jnp.sum(
        rows.astype(jnp.uint32) << np.arange(_WORD, dtype=np.uint32), axis=1, dtype=jnp.uint32
    )


def unpack(words: ArrayLike, n: int) -> Array:
    """Unpack the match lines of words from `pack`.

    Args:
      words: uint32 [ceil(n / 32)].
      n: number of lines, static.

    Returns:
      bool [n].
    """
    packed = as_vector("words", words, np.uint32)
    lines = whole("n", n, 1)
    if packed.shape[0] != -(-lines // _WORD):
        raise ValueError(f"n must be of {packed.shape[0]} words of 32 lines, got {lines}")
    bits = (packed[:, None] >> np.arange(_WORD, dtype=np.uint32)) & np.uint32(1)
    return (bits != 0).reshape(-1)[:lines]


def nth(words: ArrayLike, rank: ArrayLike) -> Array:
    """Return the index of the match with each rank, counted from 0 in the order of the lines.

    Sums over blocks of words select a block; halving selects a word and a bit in it. The cost is
    one pass over the words and about sqrt(N / 32) steps for each rank.

    Args:
      words: uint32 [W], packed match lines, W at least 1.
      rank: int32 [...].

    Returns:
      int32 [...]; -1 where there is no such match.
    """
    packed = as_vector("words", words, np.uint32)
    if hasattr(rank, "dtype"):
        require_array("rank", rank, np.int32, rank.shape)
    else:
        integer("rank", rank)
    wanted = jnp.asarray(rank, jnp.int32)
    size = _block_size(packed.shape[0])
    blocks = jnp.pad(packed, (0, -packed.shape[0] % size)).reshape(-1, size)
    ends = jnp.cumsum(_set_bits(blocks).sum(axis=1, dtype=jnp.int32))

    # The match of rank r is in the first block whose cumulative count exceeds r.
    full = ends <= wanted[..., None]
    block = jnp.sum(full, axis=-1, dtype=jnp.int32)
    left = wanted - jnp.max(jnp.where(full, ends, np.int32(0)), axis=-1)
    there = (wanted >= 0) & (block < ends.shape[0])
    row = blocks[jnp.minimum(block, np.int32(ends.shape[0] - 1))]
    index = block * np.int32(size * _WORD)

    half = size // 2
    while half:
        before = _set_bits(row[..., :half]).sum(axis=-1, dtype=jnp.int32)
        beyond = left >= before
        row = jnp.where(beyond[..., None], row[..., half:], row[..., :half])
        left, index = _pass(beyond, left, before, index, half * _WORD)
        half //= 2
    # The bit of rank r has at most r set bits up to any bit before it.
    up_to = np.uint32(2 ** np.arange(1, _WORD + 1, dtype=np.uint64) - 1)
    bit = jnp.sum(_set_bits(row & up_to) <= left[..., None], axis=-1, dtype=jnp.int32)
    return jnp.where(there, index + bit, np.int32(-1))


def draw(key: Array, words: ArrayLike, num: int) -> Array:
    """Draw independently and uniformly from the matches, by random ranks.

    Integer arithmetic throughout: each match's probability is within 2**-32 of 1 / matches.

    Args:
      key: a PRNG key.
      words: uint32 [W], packed match lines, W at least 1.
      num: number of draws, static.

    Returns:
      int32 [num], indices of lines; all -1 if nothing matches.
    """
    return draw_from(jax.random.bits(key, (whole("num", num, 1),), jnp.uint32), words)


def draw_from(random: Array, words: ArrayLike) -> Array:
    """Draw as `draw` does, by random words uint32 [num]."""
    packed = as_vector("words", words, np.uint32)
    matches = count_packed(packed)
    # Without matches every rank is 0, for which `nth` returns -1.
    return nth(packed, high_product(random, matches.astype(jnp.uint32)).astype(jnp.int32))


def _block_size(words: int) -> int:
    """Return the words in a block: the power of two next to the square root, to balance levels."""
    return 1 << (max(words - 1, 1).bit_length() // 2)


def _set_bits(words: Array) -> Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def _pass(
    beyond: Array, left: Array, before: Array, index: Array, lines: int
) -> tuple[Array, Array]:
    """Skip a lower half of `lines` lines, which holds `before` matches, where `beyond` is set."""
    return (
        jnp.where(beyond, left - before, left),
        jnp.where(beyond, index + np.int32(lines), index),
    )
