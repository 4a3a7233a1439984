"""Learning tables from a log: one role, the learner, and which backend takes it.

A training from a log has no actor and no replay: SwiftRL's whole training is one task. It runs on
JAX's host devices, in the native kernels, or on DPUs; here each is timed, or modelled, for one log.
"""

import dataclasses
import functools
from collections.abc import Mapping as Table

import jax

from accel_rl import pim
from accel_rl.arguments import instance
from accel_rl.compose import timing
from accel_rl.compose.assign import Infeasible, Space
from accel_rl.compose.costs import Cost
from accel_rl.compose.profile import check_seconds
from accel_rl.datasets import TabularDataset
from accel_rl.tabular import Order, TabularRule, make_order
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK

BACKENDS = {"cpu:0": "jax", "native": "cpu", "upmem": "upmem"}
"""The backend of `pim.train` that a device stands for."""


@dataclasses.dataclass(frozen=True)
class LogPlan:
    """What each device takes for a training from a log.

    Attributes:
      costs: seconds of the whole training by device, the least first.
      refused: why others do not take it.
    """

    costs: Table[str, Cost]
    refused: Table[str, str]

    @property
    def best(self) -> str:
        """The device of the least time, measured or modelled."""
        return next(iter(self.costs))

    @property
    def backend(self) -> str:
        """Its backend, for `pim.train`."""
        return BACKENDS[self.best]


def plan_log(
    dataset: TabularDataset,
    rule: TabularRule,
    schedule: pim.Schedule,
    *,
    dpus: int = 64,
    devices: tuple[str, ...] = tuple(BACKENDS),
    order: str | Order = "SEQ",
    target_block: int = DEFAULT_TARGET_BLOCK,
    machine: str = "upmem-2560",
    tasklets: int = 16,
    seconds: float = 1.0,
) -> LogPlan:
    """Times a training on each device that runs here, and models it on DPUs.

    The log is split into as many chunks as there are DPUs, also where none is there: what is
    computed is the same everywhere.

    Args:
      dataset: the log.
      rule: what is learned.
      schedule: how long, and how tables are merged.
      dpus: chunks.
      devices: of `BACKENDS`.
      order: in which rows of a chunk are visited.
      target_block: rows whose targets use the table as it is at the block's start.
      machine: of the DPUs, for `pim.load_machine`.
      tasklets: of a DPU.
      seconds: of each measurement, about.

    Raises:
      TypeError: if an argument is of another type.
      assign.Infeasible: if no device takes it; the message says why each does not.
      ValueError: if a device is unknown, or an argument out of its range.
    """
    instance("dataset", dataset, TabularDataset)
    instance("rule", rule, TabularRule)
    instance("schedule", schedule, pim.Schedule)
    check_seconds(seconds)
    for name in devices:
        if name not in BACKENDS:
            raise ValueError(f"devices must be of {', '.join(BACKENDS)}, got {name!r}")
    info = dataset.info
    chunks = pim.partition(dataset.transitions, dpus, info.num_states, info.num_actions)
    chosen = make_order(order) if isinstance(order, str) else order

    def train(backend: str) -> None:
        result = pim.train(
            chunks,
            rule=rule,
            schedule=schedule,
            order=chosen,
            target_block=target_block,
            backend=backend,
            machine=machine,
            tasklets=tasklets,
        )
        jax.block_until_ready(result.tables)

    def modelled() -> Cost:
        kernel = pim.modelled.Kernel(
            rule=rule.name,
            numerics=rule.numerics.name,
            order=chosen,
            target_block=target_block,
            tasklets=tasklets,
            passes=schedule.passes,
            period=schedule.period,
            merge=schedule.merge,
        )
        there = pim.load_machine(machine)
        run = pim.modelled.workload(there, pim.modelled.load_of(dataset), kernel, dpus)
        return Cost(sum(pim.modelled.parts(there, run).values()), 0.0, "modelled")

    costs: dict[str, Cost] = {}
    refused: dict[str, str] = {}
    for name in devices:
        try:
            if name == "upmem":
                costs[name] = modelled()
                continue
            train(BACKENDS[name])
        except ValueError as error:
            refused[name] = str(error)
            continue
        timed = timing.alone(functools.partial(train, BACKENDS[name]), seconds)
        costs[name] = Cost(timed.median, timed.spread, "measured")
    if not costs:
        raise Infeasible(Space(("learner",), {"learner": ()}, {"learner": refused}))
    return LogPlan(dict(sorted(costs.items(), key=lambda item: item[1].seconds)), refused)
