"""Native form of passes by owner: whole launches over all lanes in C, through XLA's FFI, on CPU.

The lanes of a DPU lie side by side in vector registers, each with the value of its run. The results
are those of `accel_rl.tabular.owners`, bit for bit in INT32; their FP32 is never contracted to FMA.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import native
from accel_rl.arguments import require_array
from accel_rl.tabular import owners
from accel_rl.tabular.passes.native import (
    NUMERICS,
    RULES,
    fold_replicas,
    kernel_names,
    seeds_of,
    verdict_of,
)
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike, PyTree

# Draws of each row, as in kernels/ffi/owned.h.
_DRAWN = {"none": 0, "logged": 0, "epsilon_greedy": 1, "table": 2}
_FIRST = np.uint32(1 << 31)  # of an index: the first row of a run
_MOST = 2**31 - 1


def unsupported(program: PassProgram) -> str | None:
    """Return the reason why the kernels cannot run a program by owner, or None if they can.

    The value of a next state is computed in JAX, so a rule that draws nothing may be any.
    """
    rule, numerics = kernel_names(program)
    tables = 2 if program.rule.choice == "table" else 1
    if (program.rule.random and rule not in RULES) or program.rule.tables != tables:
        return f"rule {program.rule.name!r} has no native kernel"
    if numerics not in NUMERICS:
        return f"numerics {program.rule.numerics.name!r} with these settings has no native kernel"
    values = (program.num_states + 1) * owners.columns(program.rule, program.num_actions)
    for name, value in (("entries", program.entries), ("values of next states", values)):
        if value > _MOST:
            return f"the native kernels take {name} up to {_MOST}, got {value}"
    return None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NativeLanes:
    """Records of D DPUs in L lanes of at most T rows, made of examined rows; from `examine`."""

    records: Array  # uint32 [D, T, 2, L]: index of the row's value, reward's bits
    lengths: Array  # int32 [D], rows of each DPU
    slots: Array  # int32 [D, L], the first run of each lane
    dpus: Array  # uint32 [D], global indices
    verdict: Array  # int32 [1, 4], as of `NativeRows`
    runs: owners.Runs

    @property
    def operands(self) -> tuple[Array, ...]:
        """Arrays that the kernels read."""
        return self.records, self.lengths, self.slots, self.dpus, self.verdict


def examine(program: PassProgram, words: Array, lengths: Array, dpus: Array) -> NativeLanes:
    """Check that every length and index of the rows is in range, and arrange the rows in lanes.

    The verdict is data, as in `accel_rl.tabular.passes.native`. With a bad one the records may hold
    anything; `launch` and `visit_counts` raise before they read them.

    Args:
      program: the pass, static; see `unsupported`.
      words: int32 [D, T, 4], encoded rows.
      lengths: int32 [D], real rows of each DPU.
      dpus: uint32 [D], global DPU indices.
    """
    reason = unsupported(program)
    if reason:
        raise ValueError(reason)
    verdict = verdict_of(program, words, lengths, dpus)
    lanes = owners.arrange(program, words, lengths)
    index = lanes.index.astype(jnp.uint32) | jnp.where(lanes.first, _FIRST, np.uint32(0))
    reward = jax.lax.bitcast_convert_type(lanes.reward, jnp.uint32)
    return NativeLanes(
        jnp.stack([index, reward], axis=2),
        lengths,
        # A DPU of no rows has no first row either.
        lanes.slot[:, 0] if lanes.slot.shape[1] else jnp.zeros(lanes.slot.shape[::2], jnp.int32),
        dpus,
        verdict,
        owners.find_runs(program, words, lengths),
    )


def launch(
    program: PassProgram,
    lanes: NativeLanes,
    table: Array,
    coefficients: Coefficients,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Run passes over all lanes, each run from its entry of the same table.

    Args:
      program: the pass, static.
      lanes: from `examine`, for this program.
      table: [K * S * A] in the numerics' dtype.
      coefficients: the rates.
      seed: uint32 [].
      first_pass: uint32 [], counted over the whole training.
      num_passes: passes, static, at least 1.

    Returns:
      [D, K * R], the values of the runs.
    """
    dtype = program.rule.numerics.dtype
    require_array("table", table, dtype, (program.entries,))
    require_array("alpha", coefficients.alpha, dtype, ())
    starts = owners.run_starts(program, lanes.runs.entry, table)
    values = owners.value_table(program, table, coefficients)
    seeds = seeds_of(program, coefficients, seed, first_pass)
    own = [x[None] for x in (starts, values, coefficients.alpha)]
    runs = _launcher(program, num_passes)((lanes.operands, seeds), own)[0]
    return runs.reshape(runs.shape[0], -1)


def visit_counts(
    program: PassProgram,
    lanes: NativeLanes,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Count the updates of each run by the passes of `launch`, uint32 [D, K * R]."""
    if program.rule.tables == 1:
        return lanes.runs.rows.astype(jnp.uint32) * np.uint32(num_passes)
    call = jax.ffi.ffi_call(
        native.target("accel_rl_tabular_owned_visits"),
        jax.ShapeDtypeStruct((lanes.lengths.shape[0], 2, program.runs), jnp.uint32),
        vmap_method="sequential",
    )
    seeds = [jnp.asarray(x, jnp.uint32) for x in (seed, first_pass)]
    counts = call(*lanes.operands, *seeds, **_attributes(program, num_passes))
    return counts.reshape(counts.shape[0], -1)


@functools.cache
def _launcher(program: PassProgram, num_passes: int) -> Callable[[PyTree, PyTree], Array]:
    """Make the kernel over starts [R, ...], values [R, M] and alpha [R], `vmap` folded into R."""
    attributes = _attributes(program, num_passes)
    attributes["rotates"] = int(program.order.name == "RAN")
    attributes["choice"] = _DRAWN[program.rule.choice or ""]
    attributes["numerics"] = NUMERICS[kernel_names(program)[1] or ""]

    def call(shared: tuple[list[Array], list[Array]], own: list[Array]) -> Array:
        operands, seeds = shared
        kernel = jax.ffi.ffi_call(
            native.target("accel_rl_tabular_owned"),
            jax.ShapeDtypeStruct(own[0].shape, own[0].dtype),
        )
        return kernel(*operands, *own, *seeds, **attributes)

    return fold_replicas(call)


def _attributes(program: PassProgram, num_passes: int) -> dict[str, int]:
    sizes = {"num_actions": program.num_actions, "size": program.size}
    return sizes | {"num_passes": num_passes}
