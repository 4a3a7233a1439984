"""Modelled cycles of the training kernel by owner on one DPU: kernels/upmem/dpu/owned.c.

Tasklet k takes the lanes k, k + t, ... of the DPU's L lanes. In a lane it takes the rows one after
the other, from a buffer of its own; targets come from values that do not change within a launch, so
tasklets meet at the beginning and the end of a launch only. In RAN each run comes after a head with
its length, and is taken in two parts.
"""

import numpy as np

from accel_rl.pim.cost.cycles import KernelCycles, barrier_cycles
from accel_rl.pim.cost.instructions import load_calibration, owner_instructions
from accel_rl.pim.cost.mram import dma_cycles, occupied_cycles
from accel_rl.pim.cost.workload import DpuWorkload
from pim_emu.cost import pipeline
from pim_emu.machine import Machine

_LAUNCH_BARRIERS = 3  # when the values are in WRAM, after the last pass, and when runs are back


def lane_pass_cycles(machine: Machine, workload: DpuWorkload, rows: int) -> KernelCycles:
    """Return the cycles of one pass over a DPU's slice of `rows` rows.

    Args:
      machine: from `load_machine`.
      workload: partitioned by owner.
      rows: of the slice, at least 1.
    """
    owner = workload.exchange
    k, reissue = load_calibration(), machine.pipeline_reissue
    update = owner_instructions(workload.rule, workload.numerics)
    heads = _heads(workload)
    if heads:
        update += k["owner_row_in_ran"]
    lengths = rows // owner.lanes + (np.arange(owner.lanes) < rows % owner.lanes)
    fit = lane_buffer_bytes(machine, workload) // workload.record_bytes
    held = lengths.max() + heads <= fit
    blocks = -(-lengths // fit)
    if heads and not held:
        blocks += np.where(lengths > 0, 2 * heads, 0)  # a head, and a part that ends early

    def cycles(work: np.ndarray) -> float:
        """Return cycles per instruction of an item, for items [L] of lanes."""
        loads = np.zeros(-(-owner.lanes // workload.tasklets) * workload.tasklets, np.int64)
        loads[: owner.lanes] = work
        return pipeline.round_robin_cycles(
            loads.reshape(-1, workload.tasklets).sum(axis=0), reissue
        )

    shared = k["owner_lane"] * cycles(lengths > 0) + k["owner_block"] * cycles(blocks)
    # Runs beyond the one that each lane begins with; which lanes have them is not known.
    more = owner.runs - min(owner.runs, owner.lanes)
    run = k["owner_run"]
    if heads:
        run += k["owner_run_in_ran"]
        shared += (k["owner_run_in_ran"] + k["owner_lane_in_ran"]) * cycles(lengths > 0)
    shared += run * pipeline.share_cycles(more, working_tasklets(workload), reissue)
    # A lane that the buffer holds is read once a launch.
    reads = [] if held else [*_reads(int(lengths.max()), fit), (1, 2 * heads)]
    wait = sum(number * _wait(machine, workload, size, update) for size, number in reads)
    return KernelCycles(apply=update * cycles(lengths), share=shared, mram_wait=wait)


def lane_launch_cycles(machine: Machine, workload: DpuWorkload) -> KernelCycles:
    """Return the cycles of a launch before its first pass and after its last.

    All tasklets read the first rows of their lanes at the same time.
    """
    k, tasklets = load_calibration(), workload.tasklets
    longest = -(-max(workload.rows_per_dpu) // workload.exchange.lanes) + _heads(workload)
    size = min(longest * workload.record_bytes, lane_buffer_bytes(machine, workload))
    readers = working_tasklets(workload)
    return KernelCycles(
        share=max(tasklets, machine.pipeline_reissue) * k["owner_launch"]
        + machine.pipeline_reissue * k["owner_alone"],
        barrier=_LAUNCH_BARRIERS * barrier_cycles(machine, tasklets),
        mram_wait=(readers - 1) * occupied_cycles(machine, size) + dma_cycles(machine, size),
        tables=dma_cycles(machine, workload.pushed_bytes)
        + dma_cycles(machine, workload.pulled_bytes, write=True),
    )


def working_tasklets(workload: DpuWorkload) -> int:
    """Return the tasklets that have a lane."""
    return min(workload.tasklets, workload.exchange.lanes)


def lane_buffer_bytes(machine: Machine, workload: DpuWorkload) -> int:
    """Return the bytes of a tasklet's row buffer.

    It is the largest power of two that WRAM has room for, up to one transfer and at least a record.
    """
    free = machine.wram_bytes - sum(lane_wram_parts(workload).values())
    size = machine.dma_max_bytes
    while size > workload.record_bytes and size * working_tasklets(workload) > free:
        size //= 2
    return size


def lane_wram_parts(workload: DpuWorkload) -> dict[str, int]:
    """Return the bytes of each part of WRAM but the row buffers."""
    k = load_calibration()
    return {
        "runs": workload.pulled_bytes,
        "values": workload.pushed_bytes - workload.pulled_bytes,
        "lanes": int(k["lane_bytes"]) * workload.exchange.lanes,
        "stacks": int(k["stack_bytes"]) * workload.tasklets,
        "reserve": int(k["wram_reserve"]),
    }


def _heads(workload: DpuWorkload) -> int:
    """Return the heads of runs in a lane: RAN has one for each run."""
    return -(-workload.exchange.runs // workload.exchange.lanes) if workload.order == "RAN" else 0


def _reads(longest: int, fit: int) -> list[tuple[int, int]]:
    """Return (rows, number) of the reads of the longest lane: full buffers, and the last one."""
    full, rest = divmod(longest, fit)
    return [(fit, full), (rest, 1)] if rest else [(fit, full)]


def _wait(machine: Machine, workload: DpuWorkload, rows: int, update: float) -> float:
    """Return the cycles that reading `rows` rows adds to a round of all tasklets.

    Tasklets are out of step, so that others compute while one reads. A round takes the longest of
    what all compute, what one computes and waits for, and what the engine is occupied.
    """
    reissue, working = machine.pipeline_reissue, working_tasklets(workload)
    size = rows * workload.record_bytes
    computing = max(working, reissue) * rows * update
    alone = reissue * rows * update + dma_cycles(machine, size)
    return max(alone - computing, working * occupied_cycles(machine, size) - computing, 0.0)
