"""Passes over chunks of rows, in several forms with the same result.

| path | form | for |
| --- | --- | --- |
| reference | `vmap` over chunks of a plain scan | the definition; tests |
| flat | one loop over all rows; `vmap` over rates shares the rows | CPU |
| batched | all chunks step together, one gather and scatter a step | GPU, TPU |

These three paths are written in JAX. `passes.native` has whole launches in C, for CPU.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.tabular import random
from accel_rl.tabular.orders import row_index
from accel_rl.tabular.passes import batched, flat, reference
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import from_words, to_words
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike


class Path(NamedTuple):
    """Form of a pass.

    Attributes:
      arrange: (program, ordered rows int32 [D, T, 4]) -> rows in the form that `sweep` reads.
      sweep: (program, tables [D, K * S * A], arranged rows, coefficients) -> tables after a pass.
    """

    arrange: Callable[[PassProgram, Array], Array]
    sweep: Callable[[PassProgram, Array, Array, Coefficients], Array]


PATHS = {
    "reference": Path(reference.arrange, reference.sweep),
    "flat": Path(flat.arrange, flat.sweep),
    "batched": Path(batched.arrange, batched.sweep),
}


def select_path(name: str = "auto", platform: str | None = None) -> Path:
    """Return the path called `name`; "auto" is "flat" on CPU and "batched" elsewhere.

    Args:
      name: "auto", "reference", "flat" or "batched".
      platform: name of a JAX platform; the default backend's if None.
    """
    if name == "auto":
        name = "flat" if (platform or jax.default_backend()) == "cpu" else "batched"
    one_of("path", name, ("auto", *PATHS))
    return PATHS[name]


def order_rows(
    program: PassProgram,
    words: Array,
    lengths: Array,
    dpus: Array,
    coefficients: Coefficients,
    seed: ArrayLike = 0,
    pass_index: ArrayLike = 0,
) -> Array:
    """Order the rows of one pass, and make the rule's random choices.

    Args:
      program: the pass, static.
      words: int32 [D, T, 4], encoded rows; rows beyond `lengths` are padding.
      lengths: int32 [D], real rows of each chunk.
      dpus: uint32 [D], global DPU indices.
      coefficients: the rates.
      seed: uint32 [].
      pass_index: uint32 [], counted over the whole training.

    Returns:
      int32 [D, T, 4].
    """
    rule, order, capacity = program.rule, program.order, words.shape[1]
    if order.name != "SEQ":
        keys = random.stream_key(seed, pass_index, dpus, random.ORDER_STREAM)
        index = jax.vmap(lambda n, key: row_index(order, capacity, n, key))(lengths, keys)
        words = jnp.take_along_axis(words, index[..., None], axis=1, mode="clip")
    if rule.random:
        keys = random.stream_key(seed, pass_index, dpus, random.ACTION_STREAM)
        draws = random.lcg_draws(keys, 2 * capacity).reshape(-1, capacity, 2)
        pair = jnp.moveaxis(draws, -1, 0)
        row = from_words(words, rule.numerics.dtype)
        row = rule.resolve(row, pair, coefficients, program.size, program.num_actions)
        words = jnp.where(row.valid[..., None], to_words(row), words)
    return words


def visit_counts(program: PassProgram, words: Array) -> Array:
    """Count the updates of each entry by the valid rows [D, T, 4], uint32 [D, K * S * A]."""
    row = from_words(words, program.rule.numerics.dtype)
    chunk = jnp.arange(words.shape[0], dtype=jnp.int32)[:, None] * np.int32(program.entries)
    counts = jnp.zeros(words.shape[0] * program.entries, jnp.uint32)
    counts = counts.at[chunk + row.entry].add(row.valid.astype(jnp.uint32))
    return counts.reshape(-1, program.entries)
