"""Launches on DPUs: passes over chunks by real DPU programs, called through XLA's FFI on CPU.

The FFI handlers are functions of their operands. DPUs keep rows between launches, but only as a
cache: rows have a token, and are sent again if the DPUs hold other rows. `accel_rl.pim.jax_backend`
computes the same results in JAX, bit for bit in INT32.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from accel_rl.pim.cost import load_calibration
from accel_rl.pim.upmem.build import dpu_program
from accel_rl.pim.upmem.host import host
from accel_rl.pim.upmem.toolkit import Toolkit, known_machine
from accel_rl.tabular.orders import NAMES as ORDERS
from accel_rl.tabular.orders import RANDOM_BLOCK
from accel_rl.tabular.owners import value_table
from accel_rl.tabular.passes import native
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array

MAX_TARGET_BLOCK = 65_535  # update lists on a DPU hold 16-bit positions
Rates = tuple[int, int, int]  # alpha, gamma, epsilon as INT32 coefficients


@dataclasses.dataclass(frozen=True)
class UpmemSettings:
    """Settings with which programs are built and run; see `pim.upmem_backend`."""

    toolkit: Toolkit
    tasklets: int
    machine: str | None
    asynchronous: bool
    count_instructions: bool
    rates: Rates | None  # compiled into the program; None if they are passed with each launch


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DpuRows:
    """Validated rows of D chunks."""

    words: Array  # int32 [D, T, 4]
    lengths: Array  # int32 [D]
    token: Array  # uint32 [1, 2], unique to these rows


def unsupported(program: PassProgram) -> str | None:
    """Return why DPUs cannot run a program, or None if they can."""
    if not program.lanes and program.target_block > MAX_TARGET_BLOCK:
        return f"DPUs take target_block up to {MAX_TARGET_BLOCK}, got {program.target_block}"
    return native.unsupported(program)


def load(settings: UpmemSettings, program: PassProgram, words: Array, lengths: Array) -> DpuRows:
    """Validate rows, and build the DPU program for chunks of their length."""
    number = _register(settings, program, words.shape[1])
    call = _call("accel_rl_upmem_load", jax.ShapeDtypeStruct((1, 2), jnp.uint32))
    return DpuRows(words, lengths, call(words, lengths, program=number))


def launch(
    settings: UpmemSettings,
    program: PassProgram,
    rows: DpuRows,
    table: Array,
    coefficients: Coefficients,
    seeds: Sequence[Array],
    num_passes: int,
) -> Array:
    """Run passes over every chunk.

    Chunks start from `table` [K * S * A], or each from its own of [D, K * S * A].

    Returns:
      Tables [D, K * S * A]; by owner, values of runs [D, K * R], 0 where there is no run.
    """
    name, operands = "accel_rl_upmem_launch", list[Array]()
    if program.lanes:
        name = "accel_rl_upmem_launch_owned"
        operands = [value_table(program, table, coefficients)]
    shape = (rows.words.shape[0], program.results)
    call = _call(name, jax.ShapeDtypeStruct(shape, table.dtype))
    rates = jnp.stack([coefficients.alpha, coefficients.gamma, coefficients.epsilon])
    tables = table.reshape(-1, program.entries)
    return call(
        *(rows.words, rows.lengths, rows.token, tables, rates, *seeds, *operands),
        program=_register(settings, program, rows.words.shape[1]),
        numerics=native.NUMERICS[native.kernel_names(program)[1] or ""],
        num_passes=num_passes,
    )


def _call(name: str, result: jax.ShapeDtypeStruct) -> Any:
    return jax.ffi.ffi_call(name, result, vmap_method="sequential")


def build_program(settings: UpmemSettings, program: PassProgram, capacity: int) -> Path:
    """Return the path of the DPU program for chunks of up to `capacity` rows."""
    rule, numerics = native.kernel_names(program)
    rates = settings.rates or ()
    options: dict[str, object] = {
        "NUMERICS": numerics,
        "ORDER": program.order.name,
        "TASKLETS": settings.tasklets,
        "DPU_FLAGS": ";".join(settings.toolkit.compiler_flags(settings.machine)),
    }
    if program.lanes:
        # What differs between environments, and between rules that do not draw, is in the operands.
        options |= {
            "PROGRAM": "owned",
            "RULE": rule if program.rule.random else "q_learning",
            "LANES": program.lanes,
            "WORKSPACE": _workspace(settings, program),
        }
        rates = (rates[0], 0, 0) if rates else ()
    else:
        options |= {name.upper(): size for name, size in _sizes(program, capacity).items()}
        options |= {"RULE": rule}
    return dpu_program(settings.toolkit, options | {"RATES": ";".join(map(str, rates))})


def _workspace(settings: UpmemSettings, program: PassProgram) -> int:
    """Return the bytes of WRAM that a program by owner has for runs, values and row buffers."""
    constants = load_calibration()
    stacks = int(constants["stack_bytes"]) * settings.tasklets
    lanes = int(constants["lane_bytes"]) * program.lanes
    taken = stacks + lanes + int(constants["wram_reserve"])
    free = int(known_machine(settings.machine).wram_bytes) - taken
    return max(free // 8 * 8, 8)  # the linker says what does not fit


def _sizes(program: PassProgram, capacity: int) -> dict[str, int]:
    """Return the sizes that a DPU program is compiled for."""
    blocks = max(-(-capacity // RANDOM_BLOCK), 1)
    return {
        "stride": program.order.stride if program.order.name == "STR" else 1,
        "block": program.target_block,
        "states": program.num_states,
        "actions": program.num_actions,
        # A power of two, so that chunks of similar lengths share a program.
        "random_blocks": 1 << (blocks - 1).bit_length() if program.order.name == "RAN" else 1,
    }


def _register(settings: UpmemSettings, program: PassProgram, capacity: int) -> int:
    """Return the number of a program; build the program if it is not cached."""
    rule, numerics = native.kernel_names(program)
    return host(settings.toolkit).add(
        build_program(settings, program, capacity),
        settings.toolkit.profile(settings.machine),
        numerics=native.NUMERICS[numerics or ""],
        rule=native.RULES.index(rule or ""),
        order=ORDERS.index(program.order.name),
        **_sizes(program, capacity),
        lanes=program.lanes,
        runs=program.runs,
        tasklets=settings.tasklets,
        workspace=_workspace(settings, program) if program.lanes else 0,
        asynchronous=settings.asynchronous,
        count_instructions=settings.count_instructions,
    )
