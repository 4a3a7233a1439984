"""Modelled time of a training run, in four parts, and its strong scaling.

The four parts are recalled from SwiftRL. Everything is computed from a machine description and an
instruction count; nothing has been run on UPMEM hardware.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from accel_rl.pim.cost.instructions import load_calibration
from accel_rl.pim.cost.kernel import run_cycles
from accel_rl.pim.cost.limits import check_fits
from accel_rl.pim.cost.workload import DpuWorkload, split_rows
from pim_emu.cost.transfers import broadcast_seconds, pull_seconds, push_seconds
from pim_emu.machine import Machine


@dataclasses.dataclass(frozen=True)
class ModelledSeconds:
    """Modelled (not measured) seconds of a training run in four parts, and energy.

    Attributes:
      cpu_to_pim: seconds to send the program, parameters, records and the first tables.
      pim_kernel: seconds of all launches on the slowest DPU.
      inter_pim: seconds of the merges through the host, without the last one.
      pim_to_cpu: seconds to fetch the last tables, and of the last merge.
      energy_joules: joules of the DPUs during the kernel and of the host during the rest.
      detail: seconds of the steps that make up the four parts, by name.
    """

    cpu_to_pim: float
    pim_kernel: float
    inter_pim: float
    pim_to_cpu: float
    energy_joules: float
    detail: Mapping[str, float]

    @property
    def total(self) -> float:
        """Sum of the four parts, in seconds; nothing overlaps."""
        return sum(self.parts().values())

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
      kernel_speedup: modelled speed-up of the PIM kernel, a ratio.
      total_speedup: modelled speed-up of all four parts together, a ratio.
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
    dpus, table = workload.dpus, workload.table_bytes
    merges = workload.launches
    cycles = dataclasses.asdict(run_cycles(machine, workload))
    kernel = {f"kernel_{name}": part / machine.clock_hz for name, part in cycles.items()}
    kernel["kernel_launch"] = merges * machine.launch_seconds

    program = machine.iram_instructions * machine.instruction_bytes
    k = load_calibration()
    parameters = int(k["parameter_bytes"] + k["codebook_bytes"])
    pull = pull_seconds(machine, dpus, table)
    broadcast = broadcast_seconds(machine, dpus, table)
    merge = dpus * table * (2 if workload.weighted_merge else 1) / machine.host_merge_bandwidth
    first_table = broadcast
    if workload.independent:
        first_table, merge = push_seconds(machine, dpus, table), 0.0

    before = {
        "program": broadcast_seconds(machine, dpus, program),
        "parameters": broadcast_seconds(machine, dpus, parameters),
        "records": push_seconds(machine, dpus, workload.chunk_bytes),
        "first_table": first_table,
    }
    between = {
        "merge_pull": (merges - 1) * pull,
        "merge_host": (merges - 1) * merge,
        "merge_broadcast": (merges - 1) * broadcast,
    }
    after = {"last_pull": pull, "last_merge": merge}
    host = sum((before | between | after).values())
    kernel_seconds = sum(kernel.values())
    return ModelledSeconds(
        cpu_to_pim=sum(before.values()),
        pim_kernel=kernel_seconds,
        inter_pim=sum(between.values()),
        pim_to_cpu=sum(after.values()),
        energy_joules=machine.dpu_watts * dpus * kernel_seconds + machine.host_watts * host,
        detail=before | kernel | between | after,
    )


def strong_scaling(
    machine: Machine, workload: DpuWorkload, dpus: Sequence[int] = (125, 250, 500, 1000, 2000)
) -> list[ScalingPoint]:
    """Model the same rows on different numbers of DPUs.

    Args:
      machine: from `load_machine`.
      workload: its rows are split again for each number of DPUs.
      dpus: numbers of DPUs; speed-ups are relative to the first.

    Returns:
      A point for each number of DPUs.
    """
    rows = [split_rows(workload.transitions, number) for number in dpus]
    runs = [
        modelled_seconds(machine, dataclasses.replace(workload, rows_per_dpu=split))
        for split in rows
    ]
    return [
        ScalingPoint(
            dpus=number,
            longest_chunk=max(split),
            modelled=run,
            ideal=number / dpus[0],
            kernel_speedup=runs[0].pim_kernel / run.pim_kernel,
            total_speedup=runs[0].total / run.total,
        )
        for number, split, run in zip(dpus, rows, runs, strict=True)
    ]
