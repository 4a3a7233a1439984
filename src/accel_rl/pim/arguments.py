"""Validation of the arguments of `pim.train`, before tracing."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import real, shown, whole
from accel_rl.pim.cost import DpuWorkload, check_fits
from accel_rl.pim.merge import check_merge
from accel_rl.pim.partition import Chunks
from accel_rl.pim.rows import record_bytes
from accel_rl.pim.schedule import MergeSchedule
from accel_rl.tabular.numerics import INT32_MAX, MAX_MEAN
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Hyperparameters
from accel_rl.types import Array, ArrayLike
from pim_emu import Machine, load_machine


def check_arguments(
    program: PassProgram, schedule: MergeSchedule, rates: Hyperparameters, chunks: Chunks
) -> None:
    """Validate the ranges of concrete numbers; see `pim.train`."""
    nx = program.rule.numerics
    check_merge(schedule.merge)
    whole("passes", schedule.passes, 1)
    whole("period", schedule.period, 1)
    whole("target_block", program.target_block, 1)
    if nx.dtype == np.int32 and program.num_actions > MAX_MEAN:
        raise ValueError(f"INT32 takes at most {MAX_MEAN} actions, got {program.num_actions}")
    for name, high in (("alpha", 1.0), ("gamma", nx.gamma_max), ("epsilon", 1.0)):
        value = real(name, getattr(rates, name))
        if isinstance(value, jax.core.Tracer):
            continue
        if not (np.all(np.asarray(value) >= 0) and np.all(np.asarray(value) <= high)):
            raise ValueError(f"{name} must be in [0, {high:g}] for {nx.name}, got {value}")
    reward, (low, high) = chunks.transitions.reward, nx.reward_range
    if not isinstance(reward, jax.core.Tracer):
        # NumPy, because jnp would trace even concrete arrays inside a jit.
        least, most = float(np.asarray(reward).min()), float(np.asarray(reward).max())
        if not (np.isfinite([least, most]).all() and low <= least and most <= high):
            raise ValueError(
                f"rewards must be finite and in [{low:g}, {high:g}] for {nx.name}, got "
                f"{least:g} to {most:g}"
            )


def check_counter(name: str, value: ArrayLike) -> Array:
    """Return a 32-bit number, concrete or traced, as uint32."""
    if isinstance(value, jax.core.Tracer):
        real(name, value)
    else:
        whole(name, np.asarray(value)[()], 0, 2**32 - 1)
    return jnp.asarray(value, jnp.uint32)


def check_initial(program: PassProgram, initial: Array) -> None:
    """Validate the shape and dtype of the initial table, and its entries if concrete."""
    nx = program.rule.numerics
    if not hasattr(initial, "dtype"):
        raise TypeError(f"initial must be an array, got {shown(initial)}")
    expected = (program.rule.tables, program.num_states, program.num_actions)
    if initial.shape != expected or initial.dtype != nx.dtype:
        raise ValueError(
            f"initial must be {nx.dtype} {expected}, got {initial.dtype} {initial.shape}"
        )
    if isinstance(initial, jax.core.Tracer):
        return
    entries = np.asarray(initial)
    if nx.dtype == np.float32 and not np.isfinite(entries).all():
        raise ValueError("initial must be finite")
    if nx.dtype == np.int32 and entries.min() < -INT32_MAX:
        raise ValueError(f"initial must be at least {-INT32_MAX}, got {entries.min()}")


def check_memory(
    program: PassProgram, chunks: Chunks, machine: str | Machine, tasklets: int
) -> None:
    """Validate that a DPU of the machine can hold the run; see `pim.cost.check_fits`."""
    limits = load_machine(machine) if isinstance(machine, str) else machine
    workload = DpuWorkload(
        rows_per_dpu=(chunks.capacity,) * chunks.num_dpus,
        num_states=program.num_states,
        num_actions=program.num_actions,
        # Memory depends on the rule only by its number of tables.
        rule="q_learning" if program.rule.tables == 1 else "double_q_learning",
        order=program.order.name,
        record_bytes=16,
        target_block=program.target_block,
        tasklets=tasklets,
    )
    with contextlib.suppress(ValueError):
        check_fits(limits, workload)
        return  # fits even with the longest records, so the rewards need no scan
    each = record_bytes(program.size, program.num_actions, chunks.transitions.reward)
    check_fits(limits, dataclasses.replace(workload, record_bytes=each))
