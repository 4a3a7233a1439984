"""Searches that rank all stored keys: the k nearest, and the best match."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.am.lines import count, nth, pack
from accel_rl.am.operands import as_count, as_key_words, as_keys, as_valid
from accel_rl.types import Array, ArrayLike


def nearest(
    keys: ArrayLike, query: ArrayLike, k: ArrayLike, *, valid: ArrayLike | None = None
) -> Array:
    """Find the k valid keys with the smallest |key - query|, or all if there are fewer.

    Among keys at the same distance, those with the lowest index come first. There is no sort: the
    distance of the last of the k keys is found bit by bit, with a count over all keys for each bit.

    Args:
      keys: uint8, uint16 or uint32 [N].
      query: integer; of the keys' dtype if traced.
      k: integer, from 0; a traced negative one counts as 0.
      valid: bool [N]; None means that all keys are valid.

    Returns:
      bool [N], with exactly min(k, number of valid keys) match lines set.
    """
    stored = as_keys(keys)
    wanted = as_key_words("query", query, stored.dtype, ())
    asked = as_count("k", k)
    usable = as_valid(valid, stored.shape)
    if usable is None:
        usable = jnp.ones(stored.shape, bool)
    distance = jnp.maximum(stored, wanted) - jnp.minimum(stored, wanted)
    asked = jnp.minimum(asked, count(usable))
    bits = 8 * stored.dtype.itemsize

    def settle(i: Array, reached: Array) -> Array:
        bit = (np.uint32(1) << (np.int32(bits - 1) - i).astype(jnp.uint32)).astype(stored.dtype)
        closer = count(usable & (distance < (reached | bit)))
        return jnp.where(closer < asked, reached | bit, reached)

    # The largest distance with fewer than k keys below it: that of the k-th nearest key.
    last = jax.lax.fori_loop(np.int32(0), np.int32(bits), settle, jnp.zeros((), stored.dtype))
    closer = usable & (distance < last)
    tied = usable & (distance == last)
    end = nth(pack(tied), asked - count(closer) - np.int32(1))
    return closer | (tied & (jnp.arange(stored.shape[0], dtype=jnp.int32) <= end))


def best_match(
    keys: ArrayLike, query: ArrayLike, dont_care: ArrayLike = 0, *, valid: ArrayLike | None = None
) -> Array:
    """Find the valid key that differs from `query` in the fewest bits where `dont_care` is 0.

    Args:
      keys: uint8, uint16 or uint32 [N].
      query: integer; of the keys' dtype if traced.
      dont_care: integer, 1 in the bits that match anything; of the keys' dtype if traced.
      valid: bool [N]; None means that all keys are valid.

    Returns:
      int32, the lowest index of such a key; -1 if no key is valid.
    """
    stored = as_keys(keys)
    wanted = as_key_words("query", query, stored.dtype, ())
    care = ~as_key_words("dont_care", dont_care, stored.dtype, ())
    usable = as_valid(valid, stored.shape)
    worst = np.uint8(8 * stored.dtype.itemsize + 1)
    # uint32 popcounts and a uint8 reduction are the fastest on CPU.
    wrong = jax.lax.population_count(((stored ^ wanted) & care).astype(jnp.uint32))
    wrong = wrong.astype(jnp.uint8)
    if usable is not None:
        wrong = jnp.where(usable, wrong, worst)
    fewest = jnp.min(wrong)
    return jnp.where(fewest < worst, nth(pack(wrong == fewest), 0), np.int32(-1))
