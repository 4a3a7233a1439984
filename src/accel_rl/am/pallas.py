"""Union of M searches over all stored keys, computed as packed match lines and their count.

Two forms with identical results: plain XLA, and a Pallas kernel that makes one pass over the keys
and writes one bit for each. The kernel was lowered for NVIDIA GPUs and run by Pallas's interpreter;
it has not been run compiled on a GPU. It uses Pallas's Triton backend, which jax 0.11 still has but
warns about.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.am.lines import count_packed, pack
from accel_rl.am.operands import as_keys, as_valid
from accel_rl.am.search import any_match, any_radius, as_query_pairs, ball
from accel_rl.arguments import one_of
from accel_rl.types import Array, ArrayLike

FORMS = ("auto", "xla", "pallas")
_LINES = 32  # match lines in a word
_ROWS = 32  # words written by one program of the kernel


def search_packed(
    keys: ArrayLike,
    queries: ArrayLike,
    *,
    dont_cares: ArrayLike | None = None,
    radii: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    form: str = "auto",
) -> tuple[Array, Array]:
    """Return the packed match lines of `any_match` or `any_radius`, and their count.

    Args:
      keys: uint8, uint16 or uint32 [N].
      queries: integer [M], M >= 1; of the keys' dtype if traced. M is static, intended for tens.
      dont_cares: integer [M] for a ternary search; of the keys' dtype if traced.
      radii: integer [M] for a radius search instead; of the keys' dtype if traced.
      valid: bool [N]; None means that all keys are valid.
      form: "xla"; "pallas", for NVIDIA GPUs, run by the interpreter on CPU; or "auto", which is
        "xla" everywhere until the kernel has been run on a GPU. Static.

    Returns:
      words: uint32 [ceil(N / 32)], as from `pack`.
      count: int32, number of lines that are set.
    """
    stored = as_keys(keys)
    one_of("form", form, FORMS)
    if (dont_cares is None) == (radii is None):
        raise ValueError("exactly one of dont_cares and radii must be given")
    name, seconds = ("radii", radii) if dont_cares is None else ("dont_cares", dont_cares)
    first, second = as_query_pairs(stored.dtype, queries, name, seconds)
    usable = as_valid(valid, stored.shape)
    if usable is None:
        usable = jnp.ones(stored.shape, bool)

    by_radius = dont_cares is None
    operands = stored, first, second, usable
    if form != "pallas":
        search = any_radius if by_radius else any_match
        words = pack(search(stored, first, second, valid=usable))
        return words, count_packed(words)
    interpreted = functools.partial(_pallas, by_radius, True)
    compiled = functools.partial(_pallas, by_radius, False)
    return jax.lax.platform_dependent(*operands, cpu=interpreted, default=compiled)


def _pallas(
    by_radius: bool, interpret: bool, keys: Array, first: Array, second: Array, usable: Array
) -> tuple[Array, Array]:
    # Imported here, because the import is slow and few programs need it.
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    if by_radius:
        base, extent = ball(first, second)
    else:
        base, extent = first & ~second, ~second
    num = base.shape[0]
    # Triton requires sizes that are powers of two. The padding is never read.
    more = (0, (1 << (num - 1).bit_length()) - num)
    base, extent = (jnp.pad(x.astype(jnp.uint32), more) for x in (base, extent))

    def kernel(keys_ref, base_ref, extent_ref, usable_ref, words_ref, counts_ref):  # type: ignore[no-untyped-def]
        block = keys_ref[...].astype(jnp.uint32)
        hits = jnp.zeros(block.shape, bool)
        for i in range(num):
            if by_radius:
                hits = hits | (block - base_ref[i] <= extent_ref[i])
            else:
                hits = hits | ((block & extent_ref[i]) == base_ref[i])
        line = jax.lax.broadcasted_iota(jnp.uint32, block.shape, 1)
        words = jnp.sum(hits.astype(jnp.uint32) << line, axis=1, dtype=jnp.uint32) & usable_ref[...]
        words_ref[...] = words
        counts_ref[0] = jnp.sum(jax.lax.population_count(words).astype(jnp.int32))

    lines = keys.shape[0]
    words = -(-lines // _LINES)
    blocks = -(-words // _ROWS)
    rows = jnp.pad(keys, (0, blocks * _ROWS * _LINES - lines)).reshape(-1, _LINES)
    gate = jnp.pad(pack(usable), (0, blocks * _ROWS - words))
    whole = pl.BlockSpec(base.shape, lambda i: (0,))
    row_words = pl.BlockSpec((_ROWS,), lambda i: (i,))
    packed, counts = pl.pallas_call(
        kernel,
        grid=(blocks,),
        in_specs=[pl.BlockSpec((_ROWS, _LINES), lambda i: (i, 0)), whole, whole, row_words],
        out_specs=[row_words, pl.BlockSpec((1,), lambda i: (i,))],
        out_shape=[
            jax.ShapeDtypeStruct((blocks * _ROWS,), np.uint32),
            jax.ShapeDtypeStruct((blocks,), np.int32),
        ],
        compiler_params=triton.CompilerParams(),
        interpret=interpret,
    )(rows, base, extent, gate)
    return packed[:words], jnp.sum(counts, dtype=jnp.int32)
