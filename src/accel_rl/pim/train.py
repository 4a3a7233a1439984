"""Training on DPUs: scatter rows once, then launch, gather and merge in each period."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from accel_rl import native
from accel_rl.arguments import one_of, whole
from accel_rl.pim import merge_native
from accel_rl.pim.backends import Backend
from accel_rl.pim.merge import MERGES, MergeSchedule, merge_tables, weight_bound
from accel_rl.pim.partition import Chunks, encode_chunks
from accel_rl.pim.prepare import prepare
from accel_rl.pim.runs import merge_runs, order_runs
from accel_rl.tabular.orders import Order
from accel_rl.tabular.owners import find_runs
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK, PassProgram
from accel_rl.tabular.rule import Hyperparameters, TabularRule
from accel_rl.types import Array, ArrayLike, PyTree
from pim_emu import Machine, device_map, pad_axis

Probe = Callable[[Array], object]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainResult:
    """Result of `train`."""

    tables: Array  # [K, S, A] in the numerics' dtype, the last merged tables
    values: Array  # [S, A] float32, action values of the tables
    history: Any  # the probe's results, stacked over merges; None without a probe
    effective: Hyperparameters  # float32 rates as the numerics represent them


def train(
    chunks: Chunks,
    hyperparameters: Hyperparameters | None = None,
    seed: ArrayLike = 0,
    *,
    rule: TabularRule,
    schedule: MergeSchedule,
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

    Every DPU updates its own tables from its own chunk. After each period of passes the tables are
    merged and broadcast. By owner (see `partition`), DPUs update only the entries of their rows,
    and all targets of a period use the table broadcast last. Pure: works under `jit` and `vmap`.
    Under `vmap` over rates the replicas share the rows, which is much faster than repeated calls.

    Args:
      chunks: from `partition`.
      hyperparameters: leaves alpha, gamma and epsilon; the defaults if None.
      seed: uint32 [], of the random orders and rules.
      rule: update rule, static.
      schedule: passes and merges, static.
      order: sampling order or its name, static.
      target_block: rows whose targets use the table as it is at the block's start; 1 is strictly
        sequential. Static, at least 1; unused by owner.
      backend: backend or its name, static.
      initial: [K, S, A] in the numerics' dtype, the initial tables; zeros if None.
      first_pass: uint32 [], the number of passes already done. Continuing after a merge, with its
        tables as `initial`, is bit-identical to one longer call.
      probe: pure function of the action values [S, A], evaluated after each merge; static.
      machine: machine whose memories the run must fit, from `pim_emu.load_machine`, or its name.
        None for no limit; the "upmem" backend then builds programs for the default machine.
      tasklets: tasklets per DPU, whose stacks take WRAM; the result does not depend on it. A
        backend given as an object has tasklets and a machine of its own.

    Returns:
      Tables, action values, the probe's history and effective rates.

    Raises:
      ValueError: if a concrete argument is out of range, if the backend is absent or cannot run the
        rule, or if a chunk exceeds the machine's MRAM or the tables its WRAM.
      jax.errors.JaxRuntimeError: by the "cpu" backend, if traced rows point outside the tables.
      pim.upmem.UpmemError: by the "upmem" backend, which waits for the result. Subclasses name the
        cause, such as a DPU fault, too few free DPUs, or a program that does not fit.

    Reference: Gogineni et al., "SwiftRL", ISPASS 2024; the exact semantics are in
      docs/tabular-semantics.md.
    """
    one_of("merge", schedule.merge, MERGES)
    whole("passes", schedule.passes, 1)
    whole("period", schedule.period, 1)
    prepared = prepare(
        rule,
        chunks,
        hyperparameters,
        seed,
        initial,
        first_pass,
        order=order,
        target_block=target_block,
        backend=backend,
        machine=machine,
        tasklets=tasklets,
    )
    return prepared.run(_train, schedule, probe)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _train(
    program: PassProgram,
    backend: Backend,
    schedule: MergeSchedule,
    probe: Probe | None,
    chunks: Chunks,
    rates: Hyperparameters,
    seed: Array,
    initial: Array,
    first_pass: Array,
) -> TrainResult:
    rule, nx = program.rule, program.rule.numerics
    c = rule.coefficients(rates)
    if program.is_static:  # vmapped seeds must not split identical replicas
        seed = jnp.uint32(0)
    words = encode_chunks(program, chunks)
    memory = backend.load(program, words, chunks.lengths, c)
    visits_of = functools.partial(backend.visits, program, memory, c, seed)
    visits_of_a_pass = visits_of(first_pass, 1)
    periods, rest = divmod(schedule.passes, schedule.period)
    # Outside of the scan, in whose body XLA would multiply anew in each period.
    constant = {n: visits_of_a_pass * np.uint32(n) for n in (schedule.period, rest)}
    rows = chunks.num_dpus * chunks.capacity
    parts = chunks.num_dpus * max(program.lanes, 1)
    runs = order_runs(program, find_runs(program, words, chunks.lengths)) if program.lanes else None

    def merge_period(table: Array, start: Array, num_passes: int) -> tuple[Array, PyTree]:
        tables = backend.launch(program, memory, table, c, seed, start, num_passes)
        if program.has_constant_visits:
            visits = constant[num_passes]
        else:
            visits = visits_of(start, num_passes)
        # Backends may pad the DPU axis.
        tables, visits = tables[: chunks.num_dpus], visits[: chunks.num_dpus]
        if tables.shape[1] != program.results or visits.shape[1] != program.results:
            shapes = f"{tables.shape} and {visits.shape}"
            raise ValueError(
                f"backend {backend.name!r} must return [D, {program.results}] values and visits, "
                f"got {shapes}: see docs/pim-backend.md"
            )
        bound = weight_bound(schedule.merge, parts, rows * num_passes)
        alpha = nx.decode_rate(c.alpha)
        if runs is None:
            how = schedule.merge, bound, backend.mesh
            merged = merge_on_mesh(*how, tables, table, visits, alpha)
        else:
            form = merge_native.merge_runs if _has_native_merge(backend.mesh) else merge_runs
            each = functools.partial(form, schedule.merge, bound=bound)
            merged = _on_each(each, backend.mesh, tables, runs, table, visits, alpha)
        values = rule.values(merged.reshape(initial.shape))
        return merged, None if probe is None else probe(values)

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
    effective = Hyperparameters(*(nx.decode_rate(x) for x in (c.alpha, c.gamma, c.epsilon)))
    return TrainResult(tables, rule.values(tables), history, effective)


def merge_on_mesh(
    name: str, bound: int, mesh: Mesh, tables: Array, base: Array, visits: Array, alpha: Array
) -> Array:
    """Merge tables [D, E] as `merge_tables`, natively if all devices of the mesh are CPUs."""
    chosen = merge_native.merge_tables if _has_native_merge(mesh) else merge_tables

    def merge(tables: Array, base: Array, visits: Array, alpha: Array) -> Array:
        return chosen(name, tables, base, visits, alpha, bound)

    # Each device merges a share of the entries over all DPUs, so that sums do not depend on the
    # number of devices.
    tables, visits = pad_axis((tables, visits), mesh, axis=1)
    mapped = device_map(merge, (1, 0, 1, None), mesh)
    merged = mapped(tables, pad_axis(base, mesh), visits, alpha)
    return _everywhere(merged, mesh)[: base.size]


def _has_native_merge(mesh: Mesh) -> bool:
    """Return whether the devices can merge in C."""
    on_cpu = all(device.platform == "cpu" for device in mesh.devices.flat)
    return on_cpu and not native.why_absent()


def _on_each(f: Callable[..., Array], mesh: Mesh, *args: PyTree) -> Array:
    # Every device does the same: runs are few, and a sum that XLA splits depends on how.
    return _everywhere(device_map(lambda *args: f(*args)[None], None, mesh)(*args)[0], mesh)


def _everywhere(x: Array, mesh: Mesh) -> Array:
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec()))
