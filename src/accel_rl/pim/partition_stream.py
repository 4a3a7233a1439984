"""Training on logs larger than memory: groups of DPUs take turns with their chunks."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.pim.agents import train_agents
from accel_rl.pim.backends import Backend, select_backend
from accel_rl.pim.merge import MERGES, MergeSchedule, weight_bound
from accel_rl.pim.partition import check_log, chunk_lengths, partition
from accel_rl.pim.train import Probe, TrainResult, merge_on_mesh
from accel_rl.pim.train_arguments import check_rewards
from accel_rl.tabular.orders import Order, make_order
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK, PassProgram
from accel_rl.tabular.rule import Hyperparameters, TabularRule
from accel_rl.types import TabularTransition
from pim_emu import Machine, load_machine

_merge = jax.jit(merge_on_mesh, static_argnums=(0, 1, 2))


def train_streamed(
    transitions: TabularTransition,
    num_dpus: int,
    num_states: int,
    num_actions: int,
    hyperparameters: Hyperparameters | None = None,
    *,
    rule: TabularRule,
    schedule: MergeSchedule,
    group_size: int = 64,
    order: str | Order = "SEQ",
    target_block: int = DEFAULT_TARGET_BLOCK,
    backend: str | Backend = "auto",
    probe: Probe | None = None,
    on_merge: Callable[[int], object] = lambda passes: None,
    machine: str | Machine | None = "upmem-2560",
    tasklets: int = 16,
) -> TrainResult:
    """Train on a log by time as `train` does, with the rows of one group of DPUs in memory.

    Bit-identical to `train(partition(...))`; in FP32 only where merges are native. In each period
    groups train one after another from the table merged last, so the log is read once a period.
    Random orders and rules cannot stream, because their streams are numbered over all DPUs.

    Args:
      transitions: concrete columns [N] in the order of the log, from
        `datasets.load(path, mapped=True)` for a log larger than memory.
      num_dpus: D, from 1 to N.
      num_states: S.
      num_actions: A, from 1 to 65,536.
      hyperparameters: leaves alpha, gamma and epsilon; the defaults if None.
      rule: update rule of one table and without random choices.
      schedule: passes and merges. A longer period reads the log less often.
      group_size: DPUs whose rows are in memory at once, at least 1.
      order: "SEQ" or "STR", or such an order.
      target_block: as in `train`.
      backend: as in `train`.
      probe: as in `train`.
      on_merge: called after each merge with the passes since the merge before.
      machine: machine of the DPUs as in `train`; groups can take turns on fewer DPUs than D.
      tasklets: as in `train`.

    Returns:
      As `train`.

    Raises:
      ValueError: an argument is out of range, or `order` or `rule` has random choices.
    """
    one_of("merge", schedule.merge, MERGES)
    whole("passes", schedule.passes, 1)
    whole("period", schedule.period, 1)
    whole("group_size", group_size, 1)
    order = make_order(order) if isinstance(order, str) else order
    check_streamable(rule, order)
    # Of the whole log, so that errors come first and number its rows.
    lengths = chunk_lengths(check_log(transitions, num_dpus, num_states, num_actions), num_dpus)
    check_rewards(rule.numerics, transitions.reward)
    ends = np.cumsum(lengths)
    machine = load_machine(machine) if isinstance(machine, str) else machine
    name = None if machine is None else machine.name
    program = PassProgram(rule, order, num_states, num_actions, target_block)
    chosen = select_backend(backend, program, tasklets=tasklets, machine=name)
    table = rule.init(num_states, num_actions)
    visits: list[np.ndarray] = []  # of a pass, by groups
    history: list[object] = []
    compiled = None if probe is None else jax.jit(probe)
    for start in range(0, schedule.passes, schedule.period):
        num_passes = min(schedule.period, schedule.passes - start)
        tables = []
        for first in range(0, num_dpus, group_size):
            dpus = slice(first, first + group_size)
            rows = slice(ends[first] - lengths[first], ends[dpus][-1])
            columns = jax.tree.map(lambda column, rows=rows: column[rows], transitions)
            count = len(lengths[dpus])
            result = train_agents(
                partition(columns, count, num_states, num_actions),
                hyperparameters,
                rule=rule,
                passes=num_passes,
                order=order,
                target_block=target_block,
                backend=chosen,
                initial=jnp.broadcast_to(table, (count, *table.shape)),
                machine=machine,
                tasklets=tasklets,
            )
            tables.append(np.asarray(result.tables).reshape(count, -1))
            if start == 0:
                visits.append(_visits(columns, lengths[dpus], num_states, num_actions))
        bound = weight_bound(schedule.merge, num_dpus, num_dpus * int(lengths[0]) * num_passes)
        table = _merge(
            schedule.merge,
            bound,
            chosen.mesh,
            np.concatenate(tables),
            table.reshape(-1),
            np.concatenate(visits) * np.uint32(num_passes),
            result.effective.alpha,
        ).reshape(table.shape)
        if compiled is not None:
            history.append(compiled(rule.values(table)))
        jax.block_until_ready(table)
        on_merge(num_passes)
    stacked = jax.tree.map(lambda *each: jnp.stack(each), *history) if history else None
    return TrainResult(table, rule.values(table), stacked, result.effective)


def check_streamable(rule: TabularRule, order: Order) -> None:
    """Check that groups of DPUs can take turns.

    Raises:
      ValueError: if the rule has several tables, or either has random choices.
    """
    program = PassProgram(rule, order, 1, 1)
    if not (program.is_static and program.has_constant_visits):
        raise ValueError(
            "groups of DPUs take turns only in order SEQ or STR and with a rule of one table "
            f"without random choices, got order {order.name} and rule {rule.name}"
        )


def _visits(
    columns: TabularTransition, lengths: np.ndarray, num_states: int, num_actions: int
) -> np.ndarray:
    """Count the rows of each entry on each DPU, uint32 [D, S * A]."""
    size = num_states * num_actions
    dpu = np.repeat(np.arange(len(lengths)), lengths)
    entry = np.asarray(columns.state) * num_actions + np.asarray(columns.action)
    counts = np.bincount(dpu * size + entry, minlength=len(lengths) * size)
    return counts.reshape(len(lengths), size).astype(np.uint32)
