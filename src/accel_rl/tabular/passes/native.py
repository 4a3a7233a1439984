"""The native form of launches: passes over many chunks in C, through XLA's FFI, on CPU.

The kernels order rows, make the rules' random choices and train, in parallel over chunks and, under
`vmap` over rates, with the replicas side by side in vector registers. What they compute is what
`passes` computes in JAX, bit for bit in INT32; their FP32 is never contracted to FMA.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from accel_rl import native
from accel_rl.tabular.orders import MAX_RANDOM_ROWS, NAMES
from accel_rl.tabular.program import Program
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike

# Their order is that of enums in kernels/common.
RULES = (
    "q_learning",
    "sarsa",
    "sarsa_epsilon_greedy",
    "expected_sarsa",
    "double_q_learning",
)
NUMERICS = {"fp32": 1, "int32_scaled": 2, "int32_pow2": 3}


def unsupported(program: Program) -> str | None:
    """Why the kernels cannot run a program, or None where they can."""
    rule, nx = program.rule, program.rule.numerics
    if rule.kernel not in RULES:
        return f"rule {rule.name!r} has no native kernel"
    if nx.kernel not in NUMERICS:
        return f"numerics {nx.name!r} with these settings has no native kernel"
    if program.entries > 2**31 - 1:
        return f"tables of {program.entries} entries exceed the native kernels' {2**31 - 1}"
    return None


def check_rows(program: Program, rows: Array, lengths: Array) -> Array:
    """The rows, once every index in them has been seen to lie in the tables.

    The other functions here trust their rows.

    Args:
      program: the pass, static.
      rows: int32 [D, T, 4], encoded rows.
      lengths: int32 [D], real rows of each chunk.

    Returns:
      int32 [D, T, 4]. Computing it fails with `jax.errors.JaxRuntimeError`, naming the row, if an
      index is out of range.
    """
    call = jax.ffi.ffi_call(
        native.target("accel_rl_tabular_check"),
        jax.ShapeDtypeStruct(rows.shape, jnp.int32),
        vmap_method="sequential",
        input_output_aliases={0: 0},
    )
    return call(rows, lengths, num_actions=program.num_actions, size=program.size)


def launch(
    program: Program,
    rows: Array,
    lengths: Array,
    dpus: Array,
    table: Array,
    coefficients: Coefficients,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Passes over every chunk, each from the same table.

    Args:
      program: the pass, static; see `unsupported`.
      rows: int32 [D, T, 4], from `check_rows`.
      lengths: int32 [D], real rows of each chunk, at most T.
      dpus: uint32 [D], global DPU indices.
      table: [K * S * A] in the numerics' dtype.
      coefficients: the rates.
      seed: uint32 [].
      first_pass: uint32 [], counted over the whole training.
      num_passes: passes, static.

    Returns:
      [D, K * S * A].

    Raises:
      ValueError: if a shape does not fit, or a chunk is too long for the order.
      TypeError: if a dtype does not fit, or the result is to be differentiated.
    """
    dtype = program.rule.numerics.dtype
    _check_operands(program, rows, lengths, dpus)
    _expect("table", table, dtype, (program.entries,))
    rates = jnp.stack([coefficients.alpha, coefficients.gamma, coefficients.epsilon])
    _expect("coefficients", rates, dtype, (3,))
    explores = program.rule.name == "sarsa_epsilon_greedy"
    explore = coefficients.explore if explores else jnp.uint32(0)
    if program.is_static:  # so that batched seeds do not part the replicas
        seed = first_pass = jnp.uint32(0)
    run = _launcher(program, num_passes)
    seeds = (jnp.asarray(x, jnp.uint32) for x in (explore, seed, first_pass))
    return run(rows, lengths, dpus, table[None], rates[:, None], *seeds)[0]


def visit_counts(
    program: Program,
    rows: Array,
    lengths: Array,
    dpus: Array,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """uint32 [D, K * S * A]: how often those passes update each entry; arguments as in `launch`."""
    _check_operands(program, rows, lengths, dpus)
    call = jax.ffi.ffi_call(
        native.target("accel_rl_tabular_visits"),
        jax.ShapeDtypeStruct((rows.shape[0], program.entries), jnp.uint32),
        vmap_method="sequential",
    )
    seeds = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
    return call(rows, lengths, dpus, *seeds, **_attributes(program, num_passes))


@functools.cache
def _launcher(program: Program, num_passes: int) -> Callable[..., Array]:
    """The kernel over tables [R, E] and rates [3, R], with `vmap` folded into R."""
    attributes = _attributes(program, num_passes)
    attributes["numerics"] = NUMERICS[program.rule.numerics.kernel or ""]

    @jax.custom_jvp
    def call(*operands: Array) -> Array:
        (chunks, _, _), (replicas, entries) = operands[0].shape, operands[3].shape
        shape = (replicas, chunks, entries)
        kernel = jax.ffi.ffi_call(
            native.target("accel_rl_tabular_launch"),
            jax.ShapeDtypeStruct(shape, program.rule.numerics.dtype),
        )
        return kernel(*operands, **attributes)

    @call.defjvp
    def differentiate(primals: Any, tangents: Any) -> Any:
        raise TypeError("the native kernels cannot be differentiated: use backend='jax'")

    @custom_vmap
    def run(*operands: Array) -> Array:
        return call(*operands)

    @run.def_vmap
    def batch(axis_size: int, batched: Sequence[bool], *operands: Array) -> tuple[Array, bool]:
        if any(batched[:3]) or any(batched[5:]):  # rows or draws differ: nothing to share
            mapped = [x for x, is_batched in zip(operands, batched, strict=True) if is_batched]

            def one(values: Sequence[Array]) -> Array:
                rest = iter(values)
                each = zip(operands, batched, strict=True)
                return run(*(next(rest) if is_batched else x for x, is_batched in each))

            return jax.lax.map(one, mapped), True
        tables, rates = (
            x if is_batched else jnp.broadcast_to(x, (axis_size, *x.shape))
            for x, is_batched in zip(operands[3:5], batched[3:5], strict=True)
        )
        tables = tables.reshape(-1, tables.shape[-1])
        rates = jnp.moveaxis(rates, 0, 1).reshape(rates.shape[1], -1)
        out = run(*operands[:3], tables, rates, *operands[5:])
        return out.reshape(axis_size, -1, *out.shape[1:]), True

    return run


def _attributes(program: Program, num_passes: int) -> dict[str, int]:
    return {
        "rule": RULES.index(program.rule.kernel or ""),
        "order": NAMES.index(program.order.name),
        "stride": program.order.stride,
        "target_block": program.target_block,
        "num_actions": program.num_actions,
        "num_passes": num_passes,
    }


def _check_operands(program: Program, rows: Array, lengths: Array, dpus: Array) -> None:
    reason = unsupported(program)
    if reason:
        raise ValueError(reason)
    chunks, capacity = rows.shape[0], rows.shape[1] if rows.ndim > 1 else 0
    _expect("rows", rows, np.dtype(np.int32), (chunks, capacity, 4))
    _expect("lengths", lengths, np.dtype(np.int32), (chunks,))
    _expect("dpus", dpus, np.dtype(np.uint32), (chunks,))
    if program.order.name == "RAN" and capacity > MAX_RANDOM_ROWS:
        raise ValueError(f"RAN orders chunks of at most {MAX_RANDOM_ROWS} rows, got {capacity}")


def _expect(name: str, array: Array, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if array.dtype != dtype:
        raise TypeError(f"{name} must be {dtype}, got {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
