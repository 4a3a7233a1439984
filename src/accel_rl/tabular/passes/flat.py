"""CPU form of a pass: one flat loop over the rows of all chunks, with dynamic slices.

XLA's CPU compiler turns a loop whose body touches few bytes into one native function; a loop over
vectors of chunks stays a loop of kernel launches, several times slower. Three loops exist:

* strict (target block 1): read, compute and write one row after the other.
* pipelined (target block B): rows lie in blocks that alternate between two chunks, and each step
  first applies the target computed B rows earlier, in the other chunk's block, then computes the
  target of its own row. So the two phases of a target block need no nested loop.
* nested (target block B, a single chunk or several replicas): a gather for one phase, an inner
  loop for the other.

Strict and nested loops have an optional last axis of replicas, contiguous in memory, for many rates
over the same rows: `vmap` of `sweep` over tables and rates becomes that axis.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from accel_rl.tabular.passes import reference
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import ROW_WORDS, TabularRow, from_words
from accel_rl.tabular.rule import Coefficients, move_towards, next_values
from accel_rl.types import Array, PyTree

# Rows handled by one loop step: the largest that XLA still compiles to a native loop (measured).
_UNROLL = 2


def arrange(program: PassProgram, words: Array) -> Array:
    """Arrange rows [D, T, 4] as one sequence of words, int32 [rows * 4], in the loop's order.

    Indices refer to one table of all DPUs. Target blocks of an even chunk alternate with those of
    the next chunk; invalid rows pad blocks, an odd number of chunks, and both ends.
    """
    chunks = words.shape[0]
    base = jnp.arange(chunks, dtype=jnp.int32)[:, None] * np.int32(program.entries)
    words = words.at[..., 0].add(base).at[..., 1].add(base)
    if program.target_block == 1:
        sequence = words.reshape(-1)
        return jnp.pad(sequence, (0, -sequence.size % (_UNROLL * ROW_WORDS)))
    blocks = reference.arrange(program, words)
    if chunks > 1:
        blocks = jnp.pad(blocks, ((0, chunks % 2), (0, 0), (0, 0), (0, 0)))
        blocks = blocks.reshape(-1, 2, *blocks.shape[1:]).swapaxes(1, 2)
    return jnp.pad(blocks.reshape(-1), program.target_block * ROW_WORDS)


def sweep(
    program: PassProgram, tables: Array, sequence: Array, coefficients: Coefficients
) -> Array:
    """Run one pass over every chunk; arguments and result as in `reference.sweep`."""
    replicas = jax.tree.map(lambda x: x[None], coefficients)
    run = _replicated(program, alternating=tables.shape[0] > 1)
    return run(tables.reshape(-1, 1), sequence, replicas).reshape(tables.shape)


@functools.cache
def _replicated(program: PassProgram, alternating: bool) -> Callable[..., Array]:
    """Make the loop over tables [n, R] and rates [R], with `vmap` folded into R."""

    @custom_vmap
    def run(tables: Array, sequence: Array, rates: Coefficients) -> Array:
        single = tables.shape[1] == 1
        if program.target_block == 1:
            loop = _strict
        else:
            loop = _pipelined if single and alternating else _nested
        if single:
            rates = jax.tree.map(lambda x: x[0], rates)
            return loop(program, tables[:, 0], sequence, rates)[:, None]
        return loop(program, tables, sequence, rates)

    @run.def_vmap
    def batch(
        axis_size: int, batched: PyTree, tables: Array, sequence: Array, rates: Coefficients
    ) -> tuple[Array, bool]:
        tables, rates = jax.tree.map(
            lambda x, is_batched: x if is_batched else jnp.broadcast_to(x, (axis_size, *x.shape)),
            (tables, rates),
            (batched[0], batched[2]),
        )
        if batched[1]:  # rows differ: nothing to share, so one after the other, each at full speed
            return jax.lax.map(lambda args: run(*args), (tables, sequence, rates)), True
        folded = jnp.moveaxis(tables, 0, 1).reshape(tables.shape[1], -1)
        rates = jax.tree.map(lambda x: x.reshape(-1), rates)
        out = run(folded, sequence, rates)
        return jnp.moveaxis(out.reshape(tables.shape[1], axis_size, -1), 1, 0), True

    return run


def _strict(program: PassProgram, flat: Array, sequence: Array, c: Coefficients) -> Array:
    unroll = _UNROLL if flat.ndim == 1 else 1

    def step(t: Array, flat: Array) -> Array:
        for words in _rows_at(sequence, t * unroll, unroll):
            row = from_words(words, program.rule.numerics.dtype)
            flat = _apply(program, flat, row, _target(program, flat, row, c), c)
        return flat

    return _fori(0, sequence.size // (unroll * ROW_WORDS), step, flat)


def _pipelined(program: PassProgram, flat: Array, sequence: Array, c: Coefficients) -> Array:
    block, dtype = program.target_block, program.rule.numerics.dtype
    unroll = _UNROLL if block % _UNROLL == 0 else 1

    def step(t: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        flat, pending = carry
        start = t * unroll
        due = _rows_at(sequence, start - block, unroll)
        fresh = _rows_at(sequence, start, unroll)
        for k in range(unroll):
            slot = jax.lax.rem(start + k, np.int32(block))
            flat = _apply(program, flat, from_words(due[k], dtype), _at(pending, slot), c)
            target = _target(program, flat, from_words(fresh[k], dtype), c)
            pending = _put(pending, slot, target)
        return flat, pending

    pending = jnp.zeros(block, flat.dtype)
    return _fori(block // unroll, sequence.size // (unroll * ROW_WORDS), step, (flat, pending))[0]


def _nested(program: PassProgram, flat: Array, sequence: Array, c: Coefficients) -> Array:
    block, words = program.target_block, program.target_block * ROW_WORDS

    def apply(flat: Array, step: tuple[TabularRow, Array]) -> tuple[Array, None]:
        row, target = step
        return _apply(program, flat, row, target, c), None

    def one_block(b: Array, flat: Array) -> Array:
        rows = from_words(
            jax.lax.dynamic_slice(sequence, (b * words,), (words,)).reshape(block, ROW_WORDS),
            program.rule.numerics.dtype,
        )
        # All targets in one gather: a loop that writes them one by one is not vectorised.
        targets = jax.vmap(lambda row: _target(program, flat, row, c))(rows)
        return jax.lax.scan(apply, flat, (rows, targets))[0]

    # The first and the last block are padding.
    return _fori(1, sequence.size // words - 1, one_block, flat)


def _rows_at(sequence: Array, start: Array, count: int) -> list[Array]:
    words = jax.lax.dynamic_slice(
        sequence, (start * ROW_WORDS,), (count * ROW_WORDS,), allow_negative_indices=False
    )
    return [words[k * ROW_WORDS : (k + 1) * ROW_WORDS] for k in range(count)]


def _target(program: PassProgram, flat: Array, row: TabularRow, c: Coefficients) -> Array:
    ahead = next_values(flat, row, program.rule.tables, program.size, program.num_actions)
    return program.rule.target(ahead, row, c)


def _apply(
    program: PassProgram, flat: Array, row: TabularRow, target: Array, c: Coefficients
) -> Array:
    old = _at(flat, row.entry)
    new = move_towards(program.rule.numerics, old, target, c.alpha)
    return _put(flat, row.entry, jnp.where(row.valid, new, old))


def _at(array: Array, index: Array) -> Array:
    return jax.lax.dynamic_index_in_dim(array, index, keepdims=False, allow_negative_indices=False)


def _put(array: Array, index: Array, value: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(
        array, value[None], index, axis=0, allow_negative_indices=False
    )


def _fori(start: int, stop: int, body: Callable[[Array, PyTree], PyTree], carry: PyTree) -> PyTree:
    return jax.lax.fori_loop(np.int32(start), np.int32(stop), body, carry)
