"""Training on DPUs: scatter, launch, gather, merge, again."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from accel_rl.pim.backend import Backend, select_backend
from accel_rl.pim.merge import check_merge, merge_tables, weight_bound
from accel_rl.pim.partition import Chunks
from accel_rl.tabular.orders import Order, make_order
from accel_rl.tabular.passes import has_constant_visits, order_rows, visit_counts
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK, Program
from accel_rl.tabular.rows import encode_transition, to_words
from accel_rl.tabular.rule import Coefficients, Hyperparameters, TabularRule
from accel_rl.types import Array, ArrayLike
from pim_emu import Machine, Workload, check_fits, device_map, load_machine, pad_axis

Probe = Callable[[Array], Any]


class Schedule(NamedTuple):
    """How long to train and how to merge; static.

    Attributes:
      passes: passes over every chunk (the papers' episodes), at least 1.
      period: passes between two merges, tau, at least 1. The last pass always merges.
      merge: one of `pim.MERGES`.
    """

    passes: int
    period: int = 1
    merge: str = "visits"


SWIFTRL = Schedule(passes=2_000, period=50, merge="mean")
"""SwiftRL's schedule as its authors' setting is remembered; not checked against the paper."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What training returns."""

    tables: Array  # [K, S, A] in the numerics' dtype: the last merged table
    values: Array  # [S, A] float32: its action values
    history: Any  # the probe's results, stacked over merges; None without a probe
    effective: Hyperparameters  # float32 rates as the numerics represent them


def train(
    chunks: Chunks,
    hyperparameters: Hyperparameters | None = None,
    seed: ArrayLike = 0,
    *,
    rule: TabularRule,
    schedule: Schedule,
    order: str | Order = "SEQ",
    target_block: int = DEFAULT_TARGET_BLOCK,
    backend: str | Backend = "auto",
    initial: Array | None = None,
    first_pass: ArrayLike = 0,
    probe: Probe | None = None,
    machine: str | Machine | None = "upmem-2560",
    tasklets: int = 16,
) -> TrainResult:
    """Train a tabular rule on chunks of logged experience, one chunk for each DPU.

    Every DPU learns from its own chunk into its own table; after each period of passes the tables
    are merged and broadcast. Pure: works under `jit` and `vmap`; mapped rates share the rows and
    are much faster than repeated calls.

    Args:
      chunks: from `partition`.
      hyperparameters: leaves alpha, gamma and epsilon; the defaults if None.
      seed: uint32 [], of the random orders and rules.
      rule: static.
      schedule: static.
      order: an order or its name, static.
      target_block: rows whose targets use the table as it is at the block's start; 1 is strictly
        sequential. Static, at least 1.
      backend: a backend or its name, static.
      initial: [K, S, A] in the numerics' dtype, the first table; zeros if None.
      first_pass: uint32 [], the number of passes already done: continuing after a merge with the
        tables so far gives the same result, bit for bit, as one longer call.
      probe: a pure function of the action values [S, A], evaluated after each merge; static.
      machine: what the run must fit, from `pim_emu.load_machine` or its name; None for no limit.
      tasklets: of the machine's DPUs, whose stacks take WRAM; the result does not depend on it.

    Returns:
      The result.

    Raises:
      ValueError: if an argument is out of its range, as far as it is concrete, if the backend is
        absent, or if a chunk exceeds the machine's MRAM or the tables its WRAM.

    Reference: Gogineni et al., "SwiftRL", ISPASS 2024; the exact semantics are in
      docs/tabular-semantics.md.
    """
    rates = Hyperparameters() if hyperparameters is None else hyperparameters
    chosen_order = make_order(order) if isinstance(order, str) else order
    program = Program(rule, chosen_order, chunks.num_states, chunks.num_actions, target_block)
    _check(program, schedule, rates, chunks)
    if machine is not None:
        _check_memory(program, chunks, machine, tasklets)
    if initial is None:
        initial = rule.init(chunks.num_states, chunks.num_actions)
    expected = (rule.tables, chunks.num_states, chunks.num_actions)
    if initial.shape != expected or initial.dtype != rule.numerics.dtype:
        raise ValueError(
            f"initial must be {rule.numerics.dtype} {expected}, got {initial.dtype} {initial.shape}"
        )
    run = functools.partial(_train, program, schedule, select_backend(backend), probe)
    return run(
        chunks, rates, jnp.asarray(seed, jnp.uint32), initial, jnp.asarray(first_pass, jnp.uint32)
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _train(
    program: Program,
    schedule: Schedule,
    backend: Backend,
    probe: Probe | None,
    chunks: Chunks,
    rates: Hyperparameters,
    seed: Array,
    initial: Array,
    first_pass: Array,
) -> TrainResult:
    rule = program.rule
    c = rule.coefficients(rates)
    words = encode_chunks(program, chunks)
    memory = backend.load(program, words, chunks.lengths, c)
    constant = count_visits(program, chunks, words, backend, c, seed, first_pass, 1)

    def merge_period(table: Array, start: Array, num_passes: int) -> tuple[Array, Any]:
        tables = backend.launch(program, memory, table, c, seed, start, num_passes)
        if has_constant_visits(program):
            visits = constant * np.uint32(num_passes)
        else:
            visits = count_visits(program, chunks, words, backend, c, seed, start, num_passes)
        merged = _merge(program, schedule, backend, chunks, tables, table, visits, c, num_passes)
        values = rule.values(merged.reshape(initial.shape))
        return merged, None if probe is None else probe(values)

    periods, rest = divmod(schedule.passes, schedule.period)
    starts = first_pass + np.uint32(schedule.period) * jnp.arange(periods, dtype=jnp.uint32)
    table, history = jax.lax.scan(
        lambda table, start: merge_period(table, start, schedule.period),
        initial.reshape(-1),
        starts,
    )
    if rest:
        last_start = first_pass + np.uint32(periods * schedule.period)
        table, last = merge_period(table, last_start, rest)
        history = jax.tree.map(lambda xs, x: jnp.concatenate([xs, x[None]]), history, last)
    tables = table.reshape(initial.shape)
    nx = rule.numerics
    effective = Hyperparameters(*(nx.decode_rate(x) for x in (c.alpha, c.gamma, c.epsilon)))
    return TrainResult(tables, rule.values(tables), history, effective)


def encode_chunks(program: Program, chunks: Chunks) -> Array:
    """int32 [D, T, 4]: the rows that backends load."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))


def count_visits(
    program: Program,
    chunks: Chunks,
    words: Array,
    backend: Backend,
    c: Coefficients,
    seed: Array,
    first_pass: Array,
    num_passes: int,
) -> Array:
    """uint32 [D, K * S * A]: updates of each entry on each DPU in the given passes."""

    def count(
        words: Array, lengths: Array, dpus: Array, c: Coefficients, seed: Array, first: Array
    ) -> Array:
        def add(k: Array, counts: Array) -> Array:
            rows = order_rows(program, words, lengths, dpus, c, seed, first + k)
            return counts + visit_counts(program, rows)

        zeros = jnp.zeros((words.shape[0], program.entries), jnp.uint32)
        return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), add, zeros)

    dpus = jnp.arange(chunks.num_dpus, dtype=jnp.uint32)
    split = pad_axis((words, chunks.lengths, dpus), backend.mesh)
    mapped = device_map(count, (0, 0, 0, None, None, None), backend.mesh)
    return mapped(*split, c, seed, first_pass)


def _merge(
    program: Program,
    schedule: Schedule,
    backend: Backend,
    chunks: Chunks,
    tables: Array,
    base: Array,
    visits: Array,
    c: Coefficients,
    num_passes: int,
) -> Array:
    # Each device merges a share of the entries, so that sums over DPUs stay within a device and
    # do not depend on the number of devices.
    mesh, num_dpus = backend.mesh, chunks.num_dpus
    bound = weight_bound(schedule.merge, num_dpus, num_dpus * chunks.capacity * num_passes)

    def merge(tables: Array, base: Array, visits: Array, alpha: Array) -> Array:
        return merge_tables(schedule.merge, tables, base, visits, alpha, bound)

    alpha = program.rule.numerics.decode_rate(c.alpha)
    tables, visits = pad_axis((tables[:num_dpus], visits[:num_dpus]), mesh, axis=1)
    merged = device_map(merge, (1, 0, 1, None), mesh)(tables, pad_axis(base, mesh), visits, alpha)
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.lax.with_sharding_constraint(merged, everywhere)[: program.entries]


def _check(program: Program, schedule: Schedule, rates: Hyperparameters, chunks: Chunks) -> None:
    nx = program.rule.numerics
    check_merge(schedule.merge)
    for name, value in (
        ("passes", schedule.passes),
        ("period", schedule.period),
        ("target_block", program.target_block),
    ):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    for name, high in (("alpha", 1.0), ("gamma", nx.gamma_max), ("epsilon", 1.0)):
        value = getattr(rates, name)
        if isinstance(value, jax.core.Tracer):
            continue
        if not (np.all(np.asarray(value) >= 0) and np.all(np.asarray(value) <= high)):
            raise ValueError(f"{name} must be in [0, {high:g}] for {nx.name}, got {value}")
    reward, (low, high) = chunks.transitions.reward, nx.reward_range
    if not isinstance(reward, jax.core.Tracer):
        # NumPy, because jnp would trace even concrete arrays inside a jit.
        least, most = float(np.asarray(reward).min()), float(np.asarray(reward).max())
        if not (low <= least and most <= high):
            raise ValueError(
                f"rewards must be finite and in [{low:g}, {high:g}] for {nx.name}, got "
                f"{least:g} to {most:g}"
            )


def _check_memory(program: Program, chunks: Chunks, machine: str | Machine, tasklets: int) -> None:
    narrow = program.size <= 65_536 and program.num_actions <= 256
    check_fits(
        load_machine(machine) if isinstance(machine, str) else machine,
        Workload(
            rows_per_dpu=(chunks.capacity,) * chunks.num_dpus,
            num_states=program.num_states,
            num_actions=program.num_actions,
            # Any rule with as many tables takes as much memory.
            rule="q_learning" if program.rule.tables == 1 else "double_q_learning",
            order=program.order.name,
            record_bytes=8 if narrow else 16,
            target_block=program.target_block,
            tasklets=tasklets,
        ),
    )
