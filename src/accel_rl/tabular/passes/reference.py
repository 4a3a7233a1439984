"""Reference form of a pass: a plain scan over one chunk, and `vmap` over chunks."""

import jax
import jax.numpy as jnp

from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import ROW_WORDS, TabularRow, from_words
from accel_rl.tabular.rule import Coefficients, move_towards, next_values
from accel_rl.types import Array


def arrange(program: PassProgram, words: Array) -> Array:
    """Cut rows [D, T, 4] into target blocks [D, blocks, B, 4], the last one padded."""
    chunks, rows, _ = words.shape
    block = program.target_block
    padded = jnp.pad(words, ((0, 0), (0, -rows % block), (0, 0)))
    return padded.reshape(chunks, -1, block, ROW_WORDS)


def sweep(program: PassProgram, tables: Array, blocks: Array, coefficients: Coefficients) -> Array:
    """Run one pass over every chunk.

    Args:
      program: the pass, static.
      tables: [D, K * S * A].
      blocks: int32 [D, blocks, B, 4], from `arrange`.
      coefficients: the rates, the same for all chunks.

    Returns:
      [D, K * S * A].
    """
    return jax.vmap(lambda q, b: _chunk(program, q, b, coefficients))(tables, blocks)


def _chunk(program: PassProgram, table: Array, blocks: Array, c: Coefficients) -> Array:
    rule, nx = program.rule, program.rule.numerics

    def one_target(table: Array, row: TabularRow) -> Array:
        ahead = next_values(table, row, rule.tables, program.size, program.num_actions)
        return rule.target(ahead, row, c)

    def apply(table: Array, step: tuple[TabularRow, Array]) -> tuple[Array, None]:
        row, target = step
        old = table[row.entry]
        new = jnp.where(row.valid, move_towards(nx, old, target, c.alpha), old)
        return table.at[row.entry].set(new), None

    def block(table: Array, words: Array) -> tuple[Array, None]:
        rows = from_words(words, nx.dtype)
        targets = jax.vmap(one_target, in_axes=(None, 0))(table, rows)
        return jax.lax.scan(apply, table, (rows, targets))

    return jax.lax.scan(block, table, blocks)[0]
