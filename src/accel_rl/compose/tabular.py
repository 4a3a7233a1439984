"""Plans of tabular training from a log: the backend of its only role, the learner.

Training from a log has no actor and no replay buffer: SwiftRL's whole training is one task. It runs
on JAX's host devices, in the native kernels, or on DPUs. Each is timed, or modelled, for one log.
"""

import dataclasses
import functools
from collections.abc import Mapping as Table

import jax

from accel_rl import pim
from accel_rl.arguments import one_of, within
from accel_rl.compose import timing
from accel_rl.compose.candidates import Infeasible
from accel_rl.compose.costs import Cost
from accel_rl.datasets import TabularDataset
from accel_rl.tabular import Order, TabularRule, make_order
from accel_rl.tabular.program import DEFAULT_TARGET_BLOCK

BACKENDS = {"cpu:0": "jax", "native": "cpu", "upmem": "upmem"}
"""Device -> backend of `pim.train`."""


@dataclasses.dataclass(frozen=True)
class LogPlan:
    """Cost of a training from a log on each device.

    Attributes:
      costs: seconds of the whole training by device, fastest first.
      refused: device -> reason, for devices that cannot run it.
    """

    costs: Table[str, Cost]
    refused: Table[str, str]

    @property
    def best(self) -> str:
        """Fastest device, by measured or modelled time."""
        return next(iter(self.costs))

    @property
    def backend(self) -> str:
        """Backend of the fastest device, for `pim.train`."""
        return BACKENDS[self.best]


def plan_log(
    dataset: TabularDataset,
    rule: TabularRule,
    schedule: pim.MergeSchedule,
    *,
    dpus: int = 64,
    devices: tuple[str, ...] = tuple(BACKENDS),
    order: str | Order = "SEQ",
    target_block: int = DEFAULT_TARGET_BLOCK,
    machine: str = "upmem-2560",
    tasklets: int = 16,
    seconds: float = 1.0,
) -> LogPlan:
    """Time a training on each device that runs here, and model it on DPUs.

    The log is split into as many chunks as there are DPUs, on every backend, so that all compute
    the same.

    Args:
      dataset: the log.
      rule: update rule.
      schedule: number of passes, and merging of tables.
      dpus: number of chunks, and of modelled DPUs.
      devices: names from `BACKENDS`.
      order: order in which the rows of a chunk are visited.
      target_block: rows whose targets use the table at the block's start.
      machine: machine of the DPUs, for `pim.load_machine`.
      tasklets: tasklets of a DPU.
      seconds: approximate time of each measurement.

    Raises:
      Infeasible: if no device can run it; the message has the reason of each.
    """
    within("seconds", seconds, "(0, inf)")
    for name in devices:
        one_of("devices", name, BACKENDS)
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
        kernel = pim.modelled.KernelSettings(
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
        raise Infeasible({"learner": refused})
    return LogPlan(dict(sorted(costs.items(), key=lambda item: item[1].seconds)), refused)
