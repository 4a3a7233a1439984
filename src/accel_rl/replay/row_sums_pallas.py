"""`row_sums` by Pallas kernels for NVIDIA GPUs: one launch for a draw, two for an update.

On a CPU Pallas's interpreter runs them, for tests: it is slow. Pallas's Triton backend is used, as
in `am.pallas`. The kernels were lowered to Triton's representation; they have not been run compiled
on a GPU.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay import row_sums
from accel_rl.replay.blocks import Blocks, around
from accel_rl.replay.row_sums import NUM_WORDS, highest, init, leaves, total
from accel_rl.types import Array, PyTree
from accel_rl.words import unit_float

__all__ = ["NUM_WORDS", "assign", "assign_range", "draw", "highest", "init", "leaves", "total"]

WARPS = 4
MOST_SLOTS = 1024  # for the kernel, whose programs each compare all slots with their own


def assign(state: Blocks, slots: Array, weights: Array) -> Blocks:
    """Set weights at int32 slots [n]; keep the last of several weights for one slot."""
    changed, sums, peaks = _on_platform(
        _assign, state.weights, state.sums, state.peaks, slots, weights
    )
    return Blocks(changed, sums, peaks, sums.sum(), peaks.max())


def assign_range(state: Blocks, first: Array, weights: Array, capacity: int) -> Blocks:
    """Set n consecutive slots, around the end of the capacity; n is at most the capacity."""
    if weights.shape[0] > MOST_SLOTS:
        return row_sums.assign_range(state, first, weights, capacity)
    return assign(state, around(first, weights.shape[0], capacity), weights)


def draw(state: Blocks, positions: Array, words: Array) -> tuple[Array, Array]:
    """Return slots at positions of the cumulative weights, and probabilities, as `row_sums` does.

    Sums are made in another order than there, so that a position next to an item's end may find its
    neighbour.
    """
    return _on_platform(_draw, state.sums, state.weights, positions, words[0])


def _on_platform(function: Callable[..., PyTree], *operands: Array) -> PyTree:
    forms = (functools.partial(function, interpret) for interpret in (True, False))
    return jax.lax.platform_dependent(
        *operands, **dict(zip(("cpu", "default"), forms, strict=True))
    )


def _draw(
    interpret: bool, sums: Array, weights: Array, positions: Array, words: Array
) -> tuple[Array, Array]:
    """Draw each item by a program of its own."""
    from jax.experimental import pallas as pl

    rows, num = sums.shape[0], positions.shape[0]
    columns = weights.shape[0] // rows
    # Triton requires sizes that are powers of two; rows of weight 0 are never drawn.
    sums = jnp.pad(sums, (0, (1 << (rows - 1).bit_length()) - rows))

    def kernel(sums_ref, weights_ref, position_ref, word_ref, slot_ref, probability_ref):  # type: ignore[no-untyped-def]
        row_sums = sums_ref[...]
        whole = jnp.sum(row_sums)
        target = position_ref[0] * whole
        row, before, _ = _search(row_sums, target)
        rest = jnp.maximum(target - before, np.float32(0))
        rest += unit_float(word_ref[0]) * (whole * np.float32(2**-24))
        found = weights_ref[pl.ds(row * np.int32(columns), columns)]
        column, _, weight = _search(found, rest)
        slot_ref[0] = row * np.int32(columns) + column
        probability_ref[0] = jnp.where(whole > 0, weight / whole, np.float32(0))

    one = pl.BlockSpec((1,), lambda i: (i,))
    return _call(
        kernel,
        num,
        [_whole(sums), _whole(weights), one, one],
        [one, one],
        [jax.ShapeDtypeStruct((num,), np.int32), jax.ShapeDtypeStruct((num,), np.float32)],
        interpret,
    )(sums, weights, positions, words)


def _search(entries: Array, target: Array) -> tuple[Array, Array, Array]:
    """Return the first positive entry whose cumulative sum exceeds the target, as `reach` does.

    Returns:
      Its index, the sum of the entries before it, and its value.
    """
    size = np.int32(entries.shape[0])
    index = jax.lax.broadcasted_iota(jnp.int32, entries.shape, 0)
    cumulated, positive = jnp.cumsum(entries), entries > 0
    first = jnp.min(jnp.where((cumulated > target) & positive, index, size))
    last = jnp.max(jnp.where(positive, index, np.int32(0)))
    found = jnp.where(first < size, first, last)
    here = index == found
    before = jnp.sum(jnp.where(here, cumulated - entries, np.float32(0)))
    return found, before, jnp.sum(jnp.where(here, entries, np.float32(0)))


def _assign(
    interpret: bool, weights: Array, sums: Array, peaks: Array, slots: Array, values: Array
) -> tuple[Array, Array, Array]:
    """Set each weight, then sum each row that has one, by a program for each item.

    Programs of one launch run in any order: those of the first write different slots, and those of
    the second that write one row's sum write the same.
    """
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    rows, num, size = sums.shape[0], slots.shape[0], np.int32(weights.shape[0])
    columns = weights.shape[0] // rows
    lanes = 1 << (num - 1).bit_length()
    padded = jnp.pad(slots, (0, lanes - num), constant_values=-1)

    def put(weights_in, slots_ref, values_ref, weights_ref):  # type: ignore[no-untyped-def]
        i = pl.program_id(0)
        slot = slots_ref[i]
        lane = jax.lax.broadcasted_iota(jnp.int32, (lanes,), 0)
        again = jnp.max(jnp.where((slots_ref[...] == slot) & (lane > i), np.int32(1), np.int32(0)))
        kept = (slot >= 0) & (slot < size) & (again == 0)
        place = weights_ref.at[jnp.where(kept, slot, np.int32(0))]
        triton.store(place, values_ref[i], mask=kept)

    weights = _call(
        put,
        num,
        [_whole(weights), _whole(padded), _whole(values)],
        _whole(weights),
        jax.ShapeDtypeStruct(weights.shape, np.float32),
        interpret,
        input_output_aliases={0: 0},
    )(weights, padded, values)

    def add_up(sums_in, peaks_in, weights_ref, row_ref, sums_ref, peaks_ref):  # type: ignore[no-untyped-def]
        row = row_ref[0]
        found = weights_ref[pl.ds(row * np.int32(columns), columns)]
        sums_ref[row] = jnp.sum(found)
        peaks_ref[row] = jnp.max(found)

    # Row 0 stands in for dropped slots: summing unchanged weights changes nothing.
    inside = (slots >= 0) & (slots < size)
    changed = jnp.where(inside, slots, np.int32(0)) // np.int32(columns)
    kept = [_whole(sums), _whole(peaks)]
    sums, peaks = _call(
        add_up,
        num,
        [*kept, _whole(weights), pl.BlockSpec((1,), lambda i: (i,))],
        kept,
        [jax.ShapeDtypeStruct((rows,), np.float32)] * 2,
        interpret,
        input_output_aliases={0: 0, 1: 1},
    )(sums, peaks, weights, changed)
    return weights, sums, peaks


def _whole(array: Array) -> Any:
    """Return the block of a whole array, which each program sees."""
    from jax.experimental import pallas as pl

    return pl.BlockSpec(array.shape, lambda i: (0,))


def _call(
    kernel: Callable[..., None],
    programs: int,
    in_specs: PyTree,
    out_specs: PyTree,
    out_shape: PyTree,
    interpret: bool,
    **options: Any,
) -> Callable[..., PyTree]:
    # Imported here, because the import is slow and few programs need it.
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    return pl.pallas_call(
        kernel,
        grid=(programs,),
        in_specs=in_specs,
        out_specs=out_specs,
        out_shape=out_shape,
        compiler_params=triton.CompilerParams(num_warps=WARPS),
        interpret=interpret,
        **options,
    )
