"""Modelled time of runs on UPMEM DPUs, from the cost model `accel_rl.pim.cost`; never measured."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from accel_rl.arguments import whole
from accel_rl.datasets import TabularDataset, validate
from accel_rl.datasets.dataset import columns
from accel_rl.pim import cost
from accel_rl.pim.partition import record_bytes
from accel_rl.pim.upmem.host import LaunchReport
from accel_rl.tabular import Order
from pim_emu.cost import broadcast_seconds, launch_seconds, pull_seconds, push_seconds
from pim_emu.machine import Machine, load_machine


@dataclasses.dataclass(frozen=True, eq=False)
class Load:
    """Columns of a dataset that the cost model needs, for any rule; they may be in a file."""

    state: np.ndarray  # [N] int32
    action: np.ndarray  # [N] int32
    next_state: np.ndarray  # [N] int32
    discount: np.ndarray  # [N] float32
    num_states: int  # S
    num_actions: int  # A
    record_bytes: int  # 8 or 16, bytes of a transition in MRAM by time

    def __len__(self) -> int:
        """Return N."""
        return len(self.state)

    def pairs(self, rows: slice = slice(None)) -> np.ndarray:
        """Return s * A + a of some rows, int32."""
        return self.state[rows] * np.int32(self.num_actions) + self.action[rows]

    @functools.cached_property
    def sorted(self) -> cost.SortedLog:
        """Log sorted by entry, for runs by owner."""
        next_rows = np.where(self.discount == 0, np.int32(self.num_states), self.next_state)
        return cost.sort_log(self.pairs(), next_rows)


def load_of(dataset: TabularDataset) -> Load:
    """Make the load of a dataset; it refers to the dataset's columns."""
    validate(dataset)
    info, table = dataset.info, columns(dataset)
    each = record_bytes(info.num_states * info.num_actions, info.num_actions, table["reward"])
    return Load(
        table["state"],
        table["action"],
        table["next_state"],
        table["discount"],
        info.num_states,
        info.num_actions,
        each,
    )


@dataclasses.dataclass(frozen=True)
class KernelSettings:
    """Settings of a DPU kernel on which its modelled time depends."""

    rule: str
    numerics: str
    order: Order
    target_block: int
    tasklets: int
    passes: int
    period: int
    merge: str
    lanes: int = 0  # of each DPU if the log is partitioned by owner; 0: by time


def workload(machine: Machine, load: Load, kernel: KernelSettings, dpus: int) -> cost.DpuWorkload:
    """Return the workload of a run for the cost model.

    By time it has the imbalance of the slowest DPU and the most entries that any visits, by owner
    the largest exchange of any.
    """
    owner = load.sorted.exchange(dpus, kernel.lanes) if kernel.lanes else None
    run = cost.DpuWorkload(
        rows_per_dpu=cost.split_rows(len(load), dpus),
        num_states=load.num_states,
        num_actions=load.num_actions,
        rule=kernel.rule,
        numerics=kernel.numerics,
        order=kernel.order.name,
        stride=kernel.order.stride,
        record_bytes=8 if owner else load.record_bytes,
        target_block=kernel.target_block,
        tasklets=kernel.tasklets,
        passes=kernel.passes,
        period=kernel.period,
        weighted_merge=kernel.merge != "mean",
        owner=owner,
    )
    cost.check_fits(machine, run)
    if owner:
        return run
    ends = np.cumsum(run.rows_per_dpu)
    visited, imbalance = 0, 1.0  # the most of any DPU: a launch lasts as long as the slowest
    for first, end in zip(ends - run.rows_per_dpu, ends, strict=True):
        pairs = load.pairs(slice(first, end))
        visited = max(visited, len(np.unique(pairs)))
        imbalance = max(imbalance, _imbalance(machine, pairs, run))
    return dataclasses.replace(run, imbalance=imbalance, visited=visited)


def parts(machine: Machine, run: cost.DpuWorkload) -> dict[str, float]:
    """Return modelled seconds: cpu_to_pim, pim_kernel, inter_pim, pim_to_cpu."""
    return {
        name: float(value) for name, value in cost.modelled_seconds(machine, run).parts().items()
    }


def parts_of_run(
    machine: Machine, report: LaunchReport, *, weighted_merge: bool = True
) -> dict[str, float]:
    """Return modelled seconds of one training on DPUs, from its recorded cycles and bytes.

    Kernel time is the cycles of the slowest DPU of each launch, at the machine's clock, and the
    host's overhead of each launch. Transfer time is the bytes moved, at the machine's bandwidths.

    Args:
        machine: machine with the clock and bandwidths.
        report: report of `pim.upmem.recording` over one training whose DPUs counted cycles.
        weighted_merge: the merge reads visit counts beside the tables (all but "mean").

    Returns:
        Seconds of cpu_to_pim, pim_kernel, inter_pim, pim_to_cpu.
    """
    _check_cycles(report)
    # None is recorded unless the training is awaited within the recording.
    launches = whole("launches of the report", report.launches, 1)
    dpus, fetched = report.dpus, report.gathered_bytes // launches
    program = report.program_loads * machine.iram_instructions * machine.instruction_bytes
    pushed = report.pushed_bytes // launches
    sent = broadcast_seconds(machine, dpus, report.broadcast_bytes // launches)
    # By owner. The host reads each value through an index and writes it for its DPU.
    sent += 3 * dpus * pushed / machine.host_merge_bandwidth + push_seconds(machine, dpus, pushed)
    pull = pull_seconds(machine, dpus, fetched)
    # By time the merge reads tables, by owner values of runs.
    merged = fetched if pushed else _table_bytes(report.broadcast_bytes, launches)
    merge = dpus * merged * (2 if weighted_merge else 1) / machine.host_merge_bandwidth
    merge += _expand_seconds(machine, dpus, merged, fetched)
    return {
        "cpu_to_pim": broadcast_seconds(machine, dpus, program + report.load_broadcast_bytes)
        + push_seconds(machine, dpus, report.scattered_bytes)
        + sent,
        "pim_kernel": report.slowest / machine.clock_hz + launches * launch_seconds(machine, dpus),
        "inter_pim": (launches - 1) * (sent + pull + merge),
        "pim_to_cpu": pull + merge,
    }


def parts_of_agents(machine: Machine, report: LaunchReport) -> dict[str, float]:
    """Return modelled seconds of independent agents on DPUs, from recorded cycles and bytes.

    Cycles and bytes are converted as in `parts_of_run`; nothing is merged. Rounds add up.

    Args:
        machine: machine with the clock and bandwidths.
        report: report of `pim.upmem.recording` over one `pim.train_agents` whose DPUs counted
            cycles.

    Returns:
        Seconds of cpu_to_pim, pim_kernel, inter_pim (always 0), pim_to_cpu.
    """
    _check_cycles(report)
    # None is recorded unless the training is awaited within the recording.
    launches, dpus = whole("launches of the report", report.launches, 1), report.dpus
    program = report.program_loads * machine.iram_instructions * machine.instruction_bytes
    broadcast = program + report.load_broadcast_bytes + report.broadcast_bytes
    expand = _expand_seconds(machine, dpus, report.pushed_bytes, report.gathered_bytes)
    return {
        "cpu_to_pim": broadcast_seconds(machine, dpus, broadcast)
        + push_seconds(machine, dpus, report.scattered_bytes + report.pushed_bytes),
        "pim_kernel": report.slowest / machine.clock_hz + launches * launch_seconds(machine, dpus),
        "inter_pim": 0.0,
        "pim_to_cpu": pull_seconds(machine, dpus, report.gathered_bytes) + expand,
    }


def parts_of_searches(machine: Machine, report: LaunchReport) -> dict[str, float]:
    """Return modelled seconds of searches and updates on DPUs, from recorded cycles and bytes.

    Cycles and bytes are converted as in `parts_of_run`. Sending the program, which happens once,
    is not included.

    Args:
        machine: machine with the clock and bandwidths.
        report: report of `pim.match.KeyMemory.report` with DPUs that counted cycles; subtract an
            earlier report with `LaunchReport.since` for the work in between.

    Returns:
        Seconds of cpu_to_pim, pim_kernel, pim_to_cpu.
    """
    _check_cycles(report)
    dpus = report.dpus
    return {
        "cpu_to_pim": broadcast_seconds(machine, dpus, report.broadcast_bytes)
        + push_seconds(machine, dpus, report.scattered_bytes),
        "pim_kernel": report.slowest / machine.clock_hz
        + report.launches * launch_seconds(machine, dpus),
        "pim_to_cpu": pull_seconds(machine, dpus, report.gathered_bytes),
    }


def scaling(
    load: Load, kernel: KernelSettings, dpus: Sequence[int], machine: Machine | None = None
) -> dict[str, list[float]]:
    """Return modelled seconds of the same dataset on different numbers of DPUs.

    Args:
        load: load of the dataset.
        kernel: settings of the DPU kernel.
        dpus: numbers of DPUs.
        machine: machine to model; the default machine if None.

    Returns:
        {"cycles": [len(dpus)], "total": [len(dpus)]}: cycles of the kernel, and all four parts,
        with launches and transfers.
    """
    machine = load_machine() if machine is None else machine
    runs = [
        cost.modelled_seconds(machine, workload(machine, load, kernel, number)) for number in dpus
    ]
    return {"cycles": [run.kernel_cycles for run in runs], "total": [run.total for run in runs]}


def _table_bytes(broadcast: int, launches: int) -> int:
    """Return the bytes of the tables that a launch by time begins with."""
    return broadcast // launches - int(cost.load_calibration()["parameter_bytes"])


def _expand_seconds(machine: Machine, dpus: int, tables: int, fetched: int) -> float:
    """Return the seconds in which the host puts values into tables, where it fetched fewer bytes.

    It writes the tables and reads the values, each through an index of 2 bytes.
    """
    if fetched >= tables:
        return 0.0
    return dpus * (tables + 1.5 * fetched) / machine.host_merge_bandwidth


def _check_cycles(report: LaunchReport) -> None:
    if report.counts_instructions:
        raise ValueError("the DPUs counted instructions: use count_instructions=False")


def _imbalance(machine: Machine, pairs: np.ndarray, run: cost.DpuWorkload) -> float:
    """Return the imbalance of the DPU with these rows."""
    if run.working_tasklets == 1:
        return 1.0
    ordered = pairs[_visiting_order(run, len(pairs))]
    return cost.ownership_imbalance(machine, ordered, run.tasklets, run.target_block)


def _visiting_order(run: cost.DpuWorkload, rows: int) -> np.ndarray:
    """Return row indices in an order with the same blocks of rows as a pass.

    RAN moves whole blocks of rows, so the stored order has the same rows in each block.
    """
    step = np.arange(rows)
    if run.order == "STR":
        return np.argsort(step % run.stride, kind="stable")
    if run.order == "RAN_REPLACEMENT":
        return np.random.default_rng(0).integers(0, rows, rows)
    return step
