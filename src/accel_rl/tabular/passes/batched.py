"""Accelerator form of a pass: all chunks step together, one gather and one scatter a step."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.tabular.passes import reference
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import TabularRow, from_words
from accel_rl.tabular.rule import Coefficients, learning_first, move_towards
from accel_rl.types import Array


def arrange(program: PassProgram, words: Array) -> Array:
    """Arrange rows [D, T, 4] as steps [blocks, B, D, 4], indexing one table of all DPUs."""
    blocks = reference.arrange(program, words)
    chunks = words.shape[0]
    base = jnp.arange(chunks, dtype=jnp.int32)[:, None, None] * np.int32(program.entries)
    blocks = blocks.at[..., 0].add(base).at[..., 1].add(base)
    return jnp.moveaxis(blocks, 0, 2)


def sweep(program: PassProgram, tables: Array, blocks: Array, coefficients: Coefficients) -> Array:
    """Run one pass over every chunk; arguments and result as in `reference.sweep`."""
    rule, nx = program.rule, program.rule.numerics

    def gather_next(flat: Array, row: TabularRow) -> list[list[Array]]:
        def table(k: int) -> list[Array]:
            start = row.next_entry + np.int32(k * program.size)
            return [_gather(flat, start + np.int32(a)) for a in range(program.num_actions)]

        return learning_first([table(k) for k in range(rule.tables)], row)

    def apply(flat: Array, step: tuple[TabularRow, Array]) -> tuple[Array, None]:
        rows, targets = step
        old = _gather(flat, rows.entry)
        new = jnp.where(rows.valid, move_towards(nx, old, targets, coefficients.alpha), old)
        # Each chunk has its own entries, so the indices of one step are distinct.
        updated = flat.at[rows.entry].set(new, unique_indices=True, mode="promise_in_bounds")
        return updated, None

    def block(flat: Array, words: Array) -> tuple[Array, None]:
        rows = from_words(words, nx.dtype)
        targets = rule.target(gather_next(flat, rows), rows, coefficients)
        return jax.lax.scan(apply, flat, (rows, targets))

    return jax.lax.scan(block, tables.reshape(-1), blocks)[0].reshape(tables.shape)


def _gather(flat: Array, index: Array) -> Array:
    return flat.at[index].get(mode="promise_in_bounds")
