"""Checks of a training's arguments: ranges, initial tables, and the memories of a DPU."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import real, require_array, whole
from accel_rl.pim.cost import DpuWorkload, OwnerExchange, check_fits
from accel_rl.pim.cost.workload import OWNER_ORDERS
from accel_rl.pim.partition import Chunks, record_bytes
from accel_rl.tabular.numerics import INT32_MAX, MAX_MEAN, Numerics
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Hyperparameters, TabularRule
from accel_rl.types import Array, ArrayLike
from pim_emu import Machine


def check_program(program: PassProgram, rates: Hyperparameters, chunks: Chunks) -> None:
    """Check the ranges of concrete numbers."""
    nx = program.rule.numerics
    whole("target_block", program.target_block, 1)
    if program.lanes and program.order.name not in OWNER_ORDERS:
        raise ValueError(
            f"order must be {' or '.join(OWNER_ORDERS)} by owner, where it only weighs the rows of "
            f"a run, got {program.order.name}"
        )
    if nx.dtype == np.int32:
        whole("num_actions of INT32", program.num_actions, 1, MAX_MEAN)
    for name, high in (("alpha", 1.0), ("gamma", nx.gamma_max), ("epsilon", 1.0)):
        value = real(name, getattr(rates, name))
        if isinstance(value, jax.core.Tracer):
            continue
        if not (np.all(np.asarray(value) >= 0) and np.all(np.asarray(value) <= high)):
            raise ValueError(f"{name} must be in [0, {high:g}] for {nx.name}, got {value}")
    check_rewards(nx, chunks.transitions.reward)


def check_rewards(numerics: Numerics, reward: ArrayLike) -> None:
    """Check that concrete rewards are finite and in the range of the numerics."""
    if isinstance(reward, jax.core.Tracer):
        return
    low, high = numerics.reward_range
    # NumPy, because jnp would trace even concrete arrays inside a jit.
    least, most = float(np.asarray(reward).min()), float(np.asarray(reward).max())
    if not (np.isfinite([least, most]).all() and low <= least and most <= high):
        raise ValueError(
            f"rewards must be finite and in [{low:g}, {high:g}] for {numerics.name}, got "
            f"{least:g} to {most:g}"
        )


def check_counter(name: str, value: ArrayLike) -> Array:
    """Convert a 32-bit number, concrete or traced, to uint32."""
    if isinstance(value, jax.core.Tracer):
        real(name, value)
    else:
        whole(name, np.asarray(value)[()], 0, 2**32 - 1)
    return jnp.asarray(value, jnp.uint32)


def check_initial(rule: TabularRule, shape: tuple[int, ...], initial: Array) -> None:
    """Check the shape and dtype of the initial tables, and their entries if concrete."""
    nx = rule.numerics
    require_array("initial", initial, nx.dtype, shape)
    if isinstance(initial, jax.core.Tracer):
        return
    entries = np.asarray(initial)
    least, most = entries.min(), entries.max()
    low = -INT32_MAX if nx.dtype == np.int32 else -np.inf
    if not np.isfinite([least, most]).all() or least < low:
        raise ValueError(
            f"initial must be finite, and at least {-INT32_MAX} in INT32, got {least:g} to {most:g}"
        )


def check_memory(
    program: PassProgram, chunks: Chunks, dpus: int, machine: Machine, tasklets: int
) -> None:
    """Check that so many DPUs of the machine can hold the run; see `pim.cost.check_fits`."""
    if program.lanes:
        _check_owner_memory(program, chunks, machine, tasklets)
        return
    workload = DpuWorkload(
        rows_per_dpu=(chunks.capacity,) * dpus,
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
        check_fits(machine, workload)
        return  # fits even with the longest records, so the rewards need no scan
    each = record_bytes(program.size, program.num_actions, chunks.transitions.reward)
    check_fits(machine, dataclasses.replace(workload, record_bytes=each))


def _check_owner_memory(
    program: PassProgram, chunks: Chunks, machine: Machine, tasklets: int
) -> None:
    """Check memory by owner, where it depends on the values that a DPU's rows need."""
    columns = chunks.transitions
    if isinstance(columns.next_state, jax.core.Tracer):
        return  # how many runs and values there are is not known
    # Of SARSA's values with logged actions a DPU gets those of its pairs (s', a') alone.
    rules = {"epsilon_greedy": "sarsa_epsilon_greedy", "table": "double_q_learning"}
    logged = program.rule.choice == "logged"

    def check(needed: int) -> None:
        every = chunks.runs * chunks.num_dpus
        workload = DpuWorkload(
            rows_per_dpu=(chunks.capacity,) * chunks.num_dpus,
            num_states=program.num_states,
            num_actions=program.num_actions,
            rule=rules.get(program.rule.choice or "", "q_learning"),
            order=program.order.name,
            tasklets=tasklets,
            owner=OwnerExchange(chunks.runs, needed, every, chunks.lanes),
        )
        check_fits(machine, workload)

    with contextlib.suppress(ValueError):
        check(min(chunks.capacity, (program.size if logged else program.num_states) + 1))
        return  # fits even if all values differ, so they need no scan
    value = np.asarray(columns.next_state)
    if logged:
        value = value * np.int32(program.num_actions) + np.asarray(columns.next_action)
    value = np.sort(np.where(np.asarray(columns.discount) == 0, np.int32(-1), value), axis=1)
    check(int((value[:, 1:] != value[:, :-1]).sum(axis=1).max(initial=0)) + 1)
