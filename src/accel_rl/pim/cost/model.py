"""Modelled time of a training run, in four parts, and its strong scaling.

The four parts are recalled from SwiftRL. Everything is computed from a machine description and an
instruction count; nothing has been run on UPMEM hardware.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from accel_rl.pim.cost.instructions import load_calibration
from accel_rl.pim.cost.kernel import run_cycles
from accel_rl.pim.cost.limits import check_fits
from accel_rl.pim.cost.owner import SortedLog
from accel_rl.pim.cost.workload import DpuWorkload, split_rows
from pim_emu.cost.transfers import (
    broadcast_seconds,
    launch_seconds,
    pull_seconds,
    push_seconds,
)
from pim_emu.machine import Machine


@dataclasses.dataclass(frozen=True)
class ModelledSeconds:
    """Modelled (not measured) seconds of a training run in four parts, and energy.

    Attributes:
      cpu_to_pim: seconds to send the program, parameters, records and the first tables.
      pim_kernel: seconds of all launches: cycles of the slowest DPU, and the host's overhead.
      inter_pim: seconds of the merges through the host, without the last one.
      pim_to_cpu: seconds to fetch the last tables, or what DPUs send of them, and of the last
        merge.
      energy_joules: joules of the DPUs during the kernel and of the host during the rest.
      detail: seconds of the steps that make up the four parts, by name.
      sort: seconds in which the host sorts the log, 0 by time. In none of the four parts: a log is
        sorted once, whatever is trained from it, as its rows are encoded once.
    """

    cpu_to_pim: float
    pim_kernel: float
    inter_pim: float
    pim_to_cpu: float
    energy_joules: float
    detail: Mapping[str, float]
    sort: float = 0.0

    @property
    def total(self) -> float:
        """Sum of the four parts, in seconds; nothing overlaps."""
        return sum(self.parts().values())

    @property
    def kernel_cycles(self) -> float:
        """Seconds of `pim_kernel` in which the slowest DPU runs: without the host's overhead."""
        steps = (name for name in self.detail if name.startswith("kernel_"))
        return sum(self.detail[name] for name in steps if name != "kernel_launch")

    def parts(self) -> dict[str, float]:
        """Return the four parts by name, in the order of the fields."""
        names = ("cpu_to_pim", "pim_kernel", "inter_pim", "pim_to_cpu")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class ScalingPoint:
    """Modelled strong scaling: one number of DPUs, compared with the first one.

    Attributes:
      dpus: number of DPUs.
      longest_chunk: rows of the DPU with most rows.
      modelled: the run's modelled time.
      ideal: linear speed-up, the number of DPUs over that of the first point.
      kernel_speedup: modelled speed-up of the kernel's cycles, a ratio; launches are not in it.
      total_speedup: modelled speed-up of all four parts together, launches too, a ratio.
    """

    dpus: int
    longest_chunk: int
    modelled: ModelledSeconds
    ideal: float
    kernel_speedup: float
    total_speedup: float


def modelled_seconds(machine: Machine, workload: DpuWorkload) -> ModelledSeconds:
    """Model a training run.

    Args:
      machine: from `load_machine`.
      workload: the run.

    Returns:
      Modelled seconds. `docs/cost-model.md` states every equation and assumption.
    """
    check_fits(machine, workload)
    cycles = dataclasses.asdict(run_cycles(machine, workload))
    kernel = {f"kernel_{name}": part / machine.clock_hz for name, part in cycles.items()}
    kernel["kernel_launch"] = workload.launches * launch_seconds(machine, workload.dpus)
    by_time = workload.owner is None
    before, between, after = (_by_time if by_time else _by_owner)(machine, workload)
    sort = 0.0 if by_time else workload.transitions / load_calibration()["host_sort_rate"]
    host = sum((before | between | after).values())
    kernel_seconds = sum(kernel.values())
    return ModelledSeconds(
        cpu_to_pim=sum(before.values()),
        pim_kernel=kernel_seconds,
        inter_pim=sum(between.values()),
        pim_to_cpu=sum(after.values()),
        energy_joules=machine.dpu_watts * workload.dpus * kernel_seconds
        + machine.host_watts * host,
        detail=before | kernel | between | after,
        sort=sort,
    )


_Steps = tuple[dict[str, float], dict[str, float], dict[str, float]]


def _by_time(machine: Machine, workload: DpuWorkload) -> _Steps:
    """Return the seconds of steps before, between and after launches that exchange tables."""
    dpus, table, merges = workload.dpus, workload.table_bytes, workload.launches
    k = load_calibration()
    parameters = int(k["parameter_bytes"] + k["codebook_bytes"])
    pull = pull_seconds(machine, dpus, workload.pulled_bytes)
    broadcast = broadcast_seconds(machine, dpus, table)
    merge = dpus * table * (2 if workload.weighted_merge else 1) / machine.host_merge_bandwidth
    expand = 0.0
    if workload.listed:  # the host puts values into tables, each through an index
        indices = workload.tables * workload.list_bytes
        expand = dpus * (workload.pulled_bytes + indices + table) / machine.host_merge_bandwidth
    first_table = broadcast
    if workload.independent:
        first_table, merge = push_seconds(machine, dpus, table), 0.0

    before = {
        "program": broadcast_seconds(machine, dpus, _program_bytes(machine)),
        "parameters": broadcast_seconds(machine, dpus, parameters),
        "lists": push_seconds(machine, dpus, workload.list_bytes),
        "records": push_seconds(machine, dpus, workload.chunk_bytes),
        "first_table": first_table,
    }
    between = {
        "merge_pull": (merges - 1) * pull,
        "merge_expand": (merges - 1) * expand,
        "merge_host": (merges - 1) * merge,
        "merge_broadcast": (merges - 1) * broadcast,
    }
    return before, between, {"last_pull": pull, "last_expand": expand, "last_merge": merge}


def _by_owner(machine: Machine, workload: DpuWorkload) -> _Steps:
    """Return the seconds of steps before, between and after launches that exchange values."""
    dpus, merges, sizes = workload.dpus, workload.launches, workload.exchange
    k, word = load_calibration(), workload.value_bytes
    pull = pull_seconds(machine, dpus, workload.pulled_bytes)
    push = push_seconds(machine, dpus, workload.pushed_bytes)
    # The merge reads of each run its values, its entry and, if weighted, its weights.
    run_bytes = workload.tables * word * (2 if workload.weighted_merge else 1) + word
    tables = workload.tables * workload.num_states * workload.num_actions * word
    merge = (sizes.all_runs * run_bytes + 2 * tables) / machine.host_merge_bandwidth
    # Values of next states are made from the tables; each value that is sent is read and written,
    # and each row or run of a DPU has an index.
    made = tables + (workload.num_states + 1) * workload.columns * word
    sent = sizes.needed * (1 + 2 * workload.columns) + sizes.runs * (1 + 2 * workload.tables)
    gather = (made + dpus * sent * word) / machine.host_merge_bandwidth
    before = {
        "program": broadcast_seconds(machine, dpus, _program_bytes(machine)),
        "parameters": broadcast_seconds(machine, dpus, int(k["parameter_bytes"])),
        "lanes": push_seconds(machine, dpus, int(k["lane_bytes"]) * sizes.lanes),
        "records": push_seconds(machine, dpus, workload.chunk_bytes),
        "first_gather": gather,
        "first_push": push,
    }
    between = {
        "merge_pull": (merges - 1) * pull,
        "merge_host": (merges - 1) * merge,
        "merge_gather": (merges - 1) * gather,
        "merge_push": (merges - 1) * push,
    }
    return before, between, {"last_pull": pull, "last_merge": merge}


def _program_bytes(machine: Machine) -> int:
    return machine.iram_instructions * machine.instruction_bytes


def strong_scaling(
    machine: Machine,
    workload: DpuWorkload,
    dpus: Sequence[int] = (125, 250, 500, 1000, 2000),
    *,
    log: SortedLog | None = None,
) -> list[ScalingPoint]:
    """Model the same rows on different numbers of DPUs.

    Args:
      machine: from `load_machine`.
      workload: its rows are split again for each number of DPUs, and `visited` is taken as None.
      dpus: numbers of DPUs; speed-ups are relative to the first.
      log: by owner, the log, whose exchange is counted again for each number of DPUs.

    Returns:
      A point for each number of DPUs.
    """
    return _scaling(machine, _split_again(workload, dpus, log))


def launch_sensitivity(
    machine: Machine,
    workload: DpuWorkload,
    seconds: Sequence[float] = (0.0, 20e-6, 50e-6, 100e-6, 200e-6),
    dpus: Sequence[int] = (125, 250, 500, 1000, 2000),
    *,
    log: SortedLog | None = None,
) -> dict[float, list[ScalingPoint]]:
    """Model strong scaling with launches of other costs, which depend on no number of ranks.

    Args:
      machine: from `load_machine`; its own cost of a launch is not used.
      workload: as for `strong_scaling`.
      seconds: costs of a launch.
      dpus: numbers of DPUs; speed-ups are relative to the first.
      log: as for `strong_scaling`.

    Returns:
      {cost of a launch: a point for each number of DPUs}.
    """
    runs = _split_again(workload, dpus, log)
    alike = dataclasses.replace(machine, launch_rank_seconds=0.0)
    return {
        each: _scaling(dataclasses.replace(alike, launch_seconds=each), runs) for each in seconds
    }


def _split_again(
    workload: DpuWorkload, dpus: Sequence[int], log: SortedLog | None
) -> list[DpuWorkload]:
    """Return the workload on each number of DPUs."""
    if (workload.owner is None) != (log is None):
        raise ValueError("log must be given if, and only if, the workload is partitioned by owner")
    return [
        dataclasses.replace(
            workload,
            rows_per_dpu=split_rows(workload.transitions, number),
            visited=None,
            owner=None if log is None else log.exchange(number, workload.exchange.lanes),
        )
        for number in dpus
    ]


def _scaling(machine: Machine, workloads: Sequence[DpuWorkload]) -> list[ScalingPoint]:
    runs = [modelled_seconds(machine, workload) for workload in workloads]
    return [
        ScalingPoint(
            dpus=workload.dpus,
            longest_chunk=max(workload.rows_per_dpu),
            modelled=run,
            ideal=workload.dpus / workloads[0].dpus,
            kernel_speedup=runs[0].kernel_cycles / run.kernel_cycles,
            total_speedup=runs[0].total / run.total,
        )
        for workload, run in zip(workloads, runs, strict=True)
    ]
