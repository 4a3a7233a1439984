"""Native form of launches: passes over many chunks in C, through XLA's FFI, on CPU.

The kernels order rows, make the rules' random choices and train, in parallel over chunks. Under
`vmap` over rates, the replicas lie side by side in vector registers. The results are those of
`passes` in JAX, bit for bit in INT32; their FP32 is never contracted to FMA.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from accel_rl import native
from accel_rl.arguments import require_array
from accel_rl.tabular.orders import NAMES, check_capacity
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike, PyTree

# Their order is that of enums in kernels/common.
RULES = (
    "q_learning",
    "sarsa",
    "sarsa_epsilon_greedy",
    "expected_sarsa",
    "double_q_learning",
)
_MOST = 2**31 - 1
NUMERICS = {"fp32": 1, "int32_scaled": 2, "int32_pow2": 3}


def unsupported(program: PassProgram) -> str | None:
    """Return the reason why the kernels cannot run a program, or None if they can."""
    rule, numerics = kernel_names(program)
    if rule not in RULES:
        return f"rule {program.rule.name!r} has no native kernel"
    if numerics not in NUMERICS:
        return f"numerics {program.rule.numerics.name!r} with these settings has no native kernel"
    for name, value in (
        ("entries", program.entries),
        ("target_block", program.target_block),
        ("stride", program.order.stride),
    ):
        if value > _MOST:
            return f"the native kernels take {name} up to {_MOST}, got {value}"
    return None


def seeds_of(
    program: PassProgram, coefficients: Coefficients, seed: ArrayLike, first_pass: ArrayLike
) -> list[Array]:
    """Return uint32 scalars explore, seed and first pass; the program's unused ones are 0.

    A constant 0 is not batched by `vmap` over seeds, so replicas that share rows stay together.
    """
    explores = kernel_names(program)[0] == "sarsa_epsilon_greedy"
    explore = coefficients.explore if explores else jnp.uint32(0)
    if program.is_static:
        seed = first_pass = jnp.uint32(0)
    return [jnp.asarray(x, jnp.uint32) for x in (explore, seed, first_pass)]


def kernel_names(program: PassProgram) -> tuple[str | None, str | None]:
    """Return the names of the native code of the rule and its numerics, or None for each."""
    rule, nx = program.rule, program.rule.numerics
    return (
        rule.kernel and rule.kernel.name_for(rule.resolve, rule.target),
        nx.kernel and nx.kernel.name_for(nx.multiply, nx.add, nx.subtract, nx.mean),
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NativeRows:
    """Examined rows of D chunks; made by `examine`."""

    words: Array  # int32 [D, T, 4], encoded rows
    lengths: Array  # int32 [D], real rows of each chunk
    dpus: Array  # uint32 [D], global DPU indices
    verdict: Array  # int32 [1, 4]: DPU, fault (0 if there is none), row and value
    # (S, A) of the tables that the verdict is about.
    tables: tuple[int, int] = dataclasses.field(metadata={"static": True})

    @property
    def operands(self) -> tuple[Array, Array, Array, Array]:
        """Arrays that the kernels read."""
        return self.words, self.lengths, self.dpus, self.verdict


def examine(program: PassProgram, words: Array, lengths: Array, dpus: Array) -> NativeRows:
    """Check that every length and index of the rows is in range, and attach the verdict.

    The verdict is data, so that many devices can agree on one before any of them fails. With a bad
    verdict `launch` and `visit_counts` raise `jax.errors.JaxRuntimeError`, which JAX sometimes
    turns into `ValueError`, and name the row.

    Args:
      program: the pass, static; see `unsupported`.
      words: int32 [D, T, 4], encoded rows.
      lengths: int32 [D], real rows of each chunk.
      dpus: uint32 [D], global DPU indices.
    """
    reason = unsupported(program)
    if reason:
        raise ValueError(reason)
    verdict = verdict_of(program, words, lengths, dpus)
    return NativeRows(words, lengths, dpus, verdict, (program.num_states, program.num_actions))


def verdict_of(program: PassProgram, words: Array, lengths: Array, dpus: Array) -> Array:
    """Return the verdict of `examine`, int32 [1, 4]."""
    chunks, capacity = words.shape[0], words.shape[1] if words.ndim > 1 else 0
    require_array("words", words, np.dtype(np.int32), (chunks, capacity, 4))
    require_array("lengths", lengths, np.dtype(np.int32), (chunks,))
    require_array("dpus", dpus, np.dtype(np.uint32), (chunks,))
    if not program.lanes:  # by owner RAN shuffles no blocks
        check_capacity(program.order, capacity)
    call = jax.ffi.ffi_call(
        native.target("accel_rl_tabular_examine"),
        jax.ShapeDtypeStruct((1, 4), jnp.int32),
        vmap_method="sequential",
    )
    sizes = {"num_actions": program.num_actions, "size": program.size}
    return call(words, lengths, dpus, **sizes)


def first_fault(verdicts: Array) -> Array:
    """Select the verdict of the lowest faulty DPU, int32 [4], from one per device, [n, 4]."""
    dpus = jnp.where(verdicts[:, 1] == 0, np.int32(2**31 - 1), verdicts[:, 0])
    return verdicts[jnp.argmin(dpus)]


def launch(
    program: PassProgram,
    rows: NativeRows,
    table: Array,
    coefficients: Coefficients,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Run passes over every chunk, all from the same table or each from its own.

    Args:
      program: the pass, static.
      rows: from `examine`, for this program.
      table: [K * S * A] or [D, K * S * A], in the numerics' dtype.
      coefficients: the rates.
      seed: uint32 [].
      first_pass: uint32 [], counted over the whole training.
      num_passes: passes, static.

    Returns:
      [D, K * S * A].
    """
    _check_rows(program, rows)
    dtype = program.rule.numerics.dtype
    starts = rows.words.shape[:1] if table.ndim == 2 else ()
    require_array("table", table, dtype, (*starts, program.entries))
    rates = jnp.stack([coefficients.alpha, coefficients.gamma, coefficients.epsilon])
    require_array("coefficients", rates, dtype, (3,))
    seeds = seeds_of(program, coefficients, seed, first_pass)
    tables = table.reshape(1, -1, program.entries)
    return _launcher(program, num_passes)((rows, seeds), (tables, rates[None]))[0]


def visit_counts(
    program: PassProgram, rows: NativeRows, seed: ArrayLike, first_pass: ArrayLike, num_passes: int
) -> Array:
    """Count the updates of each entry by the passes of `launch`, uint32 [D, K * S * A]."""
    _check_rows(program, rows)
    call = jax.ffi.ffi_call(
        native.target("accel_rl_tabular_visits"),
        jax.ShapeDtypeStruct((rows.words.shape[0], program.entries), jnp.uint32),
        vmap_method="sequential",
    )
    seeds = [jnp.asarray(x, jnp.uint32) for x in (seed, first_pass)]
    return call(*rows.operands, *seeds, **_attributes(program, num_passes))


@functools.cache
def _launcher(program: PassProgram, num_passes: int) -> Callable[[PyTree, PyTree], Array]:
    """Make the kernel over tables [R, 1 or D, E] and rates [R, 3], with `vmap` folded into R."""
    attributes = _attributes(program, num_passes)
    attributes["numerics"] = NUMERICS[kernel_names(program)[1] or ""]

    def call(shared: tuple[NativeRows, list[Array]], own: tuple[Array, Array]) -> Array:
        (rows, seeds), (tables, rates) = shared, own
        replicas, _, entries = tables.shape
        kernel = jax.ffi.ffi_call(
            native.target("accel_rl_tabular_launch"),
            jax.ShapeDtypeStruct((replicas, rows.words.shape[0], entries), tables.dtype),
        )
        return kernel(*rows.operands, tables, rates.T, *seeds, **attributes)

    return fold_replicas(call)


def fold_replicas(call: Callable[[Any, Any], Array]) -> Callable[[PyTree, PyTree], Array]:
    """Fold `vmap` over replicas into the axis that a kernel has for them.

    Args:
      call: (shared, own) -> result; the leaves of `own` and the result begin with an axis [R].

    Returns:
      The same function. Where `vmap` maps `shared` too, calls run one after the other.
    """

    @jax.custom_jvp
    def once(shared: PyTree, own: PyTree) -> Array:
        return call(shared, own)

    @once.defjvp
    def differentiate(primals: PyTree, tangents: PyTree) -> PyTree:
        raise TypeError("the native kernels cannot be differentiated: use backend='jax'")

    @custom_vmap
    def run(shared: PyTree, own: PyTree) -> Array:
        return once(shared, own)

    @run.def_vmap
    def batch(axis_size: int, batched: PyTree, shared: PyTree, own: PyTree) -> tuple[Array, bool]:
        def broadcast(x: Array, is_batched: bool) -> Array:
            return x if is_batched else jnp.broadcast_to(x, (axis_size, *x.shape))

        own = jax.tree.map(broadcast, own, batched[1])
        if any(jax.tree.leaves(batched[0])):  # rows or draws differ: nothing to share
            leaves, structure = jax.tree.flatten(shared)
            is_batched = jax.tree.leaves(batched[0])

            def one(k: Array) -> Array:
                each = [x[k] if mapped else x for x, mapped in zip(leaves, is_batched, strict=True)]
                return run(jax.tree.unflatten(structure, each), jax.tree.map(lambda x: x[k], own))

            return jax.lax.map(one, jnp.arange(axis_size)), True
        replicas = jax.tree.leaves(own)[0].shape[1]
        own = jax.tree.map(lambda x: x.reshape(axis_size * replicas, *x.shape[2:]), own)
        out = run(shared, own)
        return out.reshape(axis_size, replicas, *out.shape[1:]), True

    return run


def _attributes(program: PassProgram, num_passes: int) -> dict[str, int]:
    return {
        "rule": RULES.index(kernel_names(program)[0] or ""),
        "order": NAMES.index(program.order.name),
        "stride": program.order.stride,
        "target_block": program.target_block,
        "num_actions": program.num_actions,
        "num_passes": num_passes,
    }


def _check_rows(program: PassProgram, rows: NativeRows) -> None:
    expected = (program.num_states, program.num_actions)
    if rows.tables != expected:
        raise ValueError(f"rows were examined for tables of {rows.tables}, not of {expected}")
