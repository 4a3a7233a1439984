"""Searches that compare each stored key independently, as the rows of a ternary CAM do.

Each returns match lines: one bool for each key. `valid` holds the keys' valid bits; None means that
all are valid. Keys may have any shape, so that a few gathered keys can be tested as well as all
stored keys. Known arguments out of range raise before anything is traced.
"""

import functools
import operator

import jax.numpy as jnp
import numpy as np

from accel_rl.am.operands import as_count, as_key_words, as_keys, as_valid, key_dtype
from accel_rl.types import Array, ArrayLike


def match(
    keys: ArrayLike, query: ArrayLike, dont_care: ArrayLike = 0, *, valid: ArrayLike | None = None
) -> Array:
    """Find the keys that equal `query` wherever `dont_care` is 0, a ternary search.

    Args:
      keys: uint8, uint16 or uint32 [...].
      query: integer; of the keys' dtype if traced.
      dont_care: integer, 1 in the bits that match anything; of the keys' dtype if traced.
      valid: bool [...], of the keys' shape.

    Returns:
      bool [...].
    """
    stored = as_keys(keys)
    wanted = as_key_words("query", query, stored.dtype, ())
    care = ~as_key_words("dont_care", dont_care, stored.dtype, ())
    return _gated((stored & care) == (wanted & care), valid)


def exact(keys: ArrayLike, query: ArrayLike, *, valid: ArrayLike | None = None) -> Array:
    """Find the keys that equal `query`; arguments, result and errors are as for `match`.

    Args:
      keys: as for `match`.
      query: the key to find, of the keys' dtype.
      valid: as for `match`.
    """
    return match(keys, query, valid=valid)


def prefix(
    keys: ArrayLike, query: ArrayLike, low_bits: ArrayLike, *, valid: ArrayLike | None = None
) -> Array:
    """Find the keys that equal `query` above its `low_bits` lowest bits: one aligned block of keys.

    Args:
      keys: uint8, uint16 or uint32 [...].
      query: integer; of the keys' dtype if traced.
      low_bits: integer, 0 to the keys' width; clipped to that if traced.
      valid: bool [...], of the keys' shape.

    Returns:
      bool [...].
    """
    stored = as_keys(keys)
    return match(stored, query, low_mask(low_bits, 8 * stored.dtype.itemsize), valid=valid)


def low_mask(low_bits: ArrayLike, bits: int) -> Array:
    """Return the mask whose `low_bits` lowest bits are 1, for use as `dont_care`.

    Args:
      low_bits: integer, 0 to `bits`; clipped to that if traced.
      bits: 8, 16 or 32, static.

    Returns:
      uint8, uint16 or uint32 scalar.
    """
    dtype = key_dtype(bits)
    number = as_count("low_bits", low_bits, limit=bits)
    # Shifts by the whole width are undefined.
    mask = (np.uint32(1) << jnp.minimum(number, np.int32(31)).astype(jnp.uint32)) - np.uint32(1)
    return jnp.where(number == bits, np.uint32(2**bits - 1), mask).astype(dtype)


def radius(
    keys: ArrayLike, query: ArrayLike, radius: ArrayLike, *, valid: ArrayLike | None = None
) -> Array:
    """Find the keys at most `radius` from `query`; the ball is cut at 0 and at the largest key.

    Args:
      keys: uint8, uint16 or uint32 [...].
      query: integer; of the keys' dtype if traced.
      radius: integer, from 0; of the keys' dtype if traced.
      valid: bool [...], of the keys' shape.

    Returns:
      bool [...].
    """
    stored = as_keys(keys)
    wanted = as_key_words("query", query, stored.dtype, ())
    reach = as_key_words("radius", radius, stored.dtype, ())
    low, width = ball(wanted, reach)
    return _gated(stored - low <= width, valid)


def any_match(
    keys: ArrayLike, queries: ArrayLike, dont_cares: ArrayLike, *, valid: ArrayLike | None = None
) -> Array:
    """Return the union of M ternary searches, in one pass over the keys.

    Args:
      keys: uint8, uint16 or uint32 [...].
      queries: integer [M]; of the keys' dtype if traced. M is static and intended for tens, because
        the program grows with it.
      dont_cares: integer [M]; of the keys' dtype if traced.
      valid: bool [...], of the keys' shape.

    Returns:
      bool [...].
    """
    stored = as_keys(keys)
    wanted, masks = as_query_pairs(stored.dtype, queries, "dont_cares", dont_cares)
    care = ~masks
    wanted = wanted & care
    hits = ((stored & care[i]) == wanted[i] for i in range(care.shape[0]))
    return _gated(functools.reduce(operator.or_, hits, jnp.zeros(stored.shape, bool)), valid)


def any_radius(
    keys: ArrayLike, queries: ArrayLike, radii: ArrayLike, *, valid: ArrayLike | None = None
) -> Array:
    """Return the union of M radius searches, in one pass over the keys.

    Args:
      keys: uint8, uint16 or uint32 [...].
      queries: integer [M]; of the keys' dtype if traced. M is static and intended for tens, because
        the program grows with it.
      radii: integer [M], from 0; of the keys' dtype if traced.
      valid: bool [...], of the keys' shape.

    Returns:
      bool [...].
    """
    stored = as_keys(keys)
    low, width = ball(*as_query_pairs(stored.dtype, queries, "radii", radii))
    hits = (stored - low[i] <= width[i] for i in range(low.shape[0]))
    return _gated(functools.reduce(operator.or_, hits, jnp.zeros(stored.shape, bool)), valid)


def as_query_pairs(
    dtype: np.dtype, queries: ArrayLike, name: str, seconds: ArrayLike
) -> tuple[Array, Array]:
    """Convert queries and the mask or radius of each to arrays [M] of the keys' dtype."""
    shape = (np.size(queries),)
    return (
        as_key_words("queries", queries, dtype, shape),
        as_key_words(name, seconds, dtype, shape),
    )


def ball(query: Array, reach: Array) -> tuple[Array, Array]:
    """Return the smallest key within reach, and the distance from it to the largest.

    `key - low <= width` with unsigned wrap-around then tests both ends at once.
    """
    top = np.asarray(np.iinfo(query.dtype).max, query.dtype)
    low = query - jnp.minimum(query, reach)
    return low, query + jnp.minimum(reach, top - query) - low


def _gated(hits: Array, valid: ArrayLike | None) -> Array:
    lines = as_valid(valid, hits.shape)
    return hits if lines is None else hits & lines
