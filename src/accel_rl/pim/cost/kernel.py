"""Modelled cycles of the training kernel on one DPU: kernels/upmem/dpu.

A pass takes the rows in target blocks of B. Each tasklet computes the targets of its share, lists
these updates by owner and reads its next rows. After a barrier, each tasklet applies, in row order,
the updates of the entries that it owns. Another barrier ends the block. With B = 1 every update
sees the previous one: one tasklet does all updates, the others wait. A log that is partitioned by
owner has a kernel of its own: `lanes`.
"""

import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.cost.cycles import KernelCycles, barrier_cycles
from accel_rl.pim.cost.instructions import check_rule, load_calibration, update_instructions
from accel_rl.pim.cost.lanes import lane_launch_cycles, lane_pass_cycles
from accel_rl.pim.cost.mram import read_cycles, table_cycles
from accel_rl.pim.cost.workload import DpuWorkload
from pim_emu.cost import pipeline
from pim_emu.machine import Machine

_LAUNCH_BARRIERS = 3  # when the tables are in WRAM, after the last pass, and when they are back
_ORDER_BARRIERS = 3  # of a pass in RAN: after the draws, after the swaps, after the first reads


def run_cycles(machine: Machine, workload: DpuWorkload) -> KernelCycles:
    """Return the cycles of all launches, on the slowest DPU."""
    chunks = (pass_cycles(machine, workload, rows) for rows in set(workload.rows_per_dpu))
    slowest = max(chunks, key=lambda cycles: cycles.total)
    return slowest * workload.passes + launch_cycles(machine, workload) * workload.launches


def launch_cycles(machine: Machine, workload: DpuWorkload) -> KernelCycles:
    """Return the cycles of a launch before its first pass and after its last."""
    if workload.owner is not None:
        return lane_launch_cycles(machine, workload)
    return KernelCycles(
        tables=table_cycles(machine, workload),
        barrier=_LAUNCH_BARRIERS * barrier_cycles(machine, workload.tasklets),
    )


def pass_cycles(machine: Machine, workload: DpuWorkload, rows: int) -> KernelCycles:
    """Count cycles of one pass over a chunk of `rows` rows: what is there, the last block included.

    Args:
      machine: from `load_machine`.
      workload: rule, numerics and shape.
      rows: of the chunk, at least 0.
    """
    whole("rows", rows, 0)
    if rows == 0:
        return KernelCycles()
    if workload.owner is not None:
        return lane_pass_cycles(machine, workload, rows)
    if workload.target_block == 1:
        cycles = _sequential_cycles(machine, workload, rows)
    else:
        blocks, rest = divmod(rows, workload.target_block)
        cycles = block_cycles(machine, workload, workload.target_block) * blocks
        cycles += block_cycles(machine, workload, rest)
    if workload.order == "RAN":
        cycles += _permutation_cycles(machine, workload, rows)
    return cycles


def block_cycles(machine: Machine, workload: DpuWorkload, rows: int) -> KernelCycles:
    """Return the cycles of a target block of `rows` rows, B at least 2, and of reading them."""
    if rows == 0:
        return KernelCycles()
    k = load_calibration()
    update = update_instructions(workload.rule, workload.numerics, workload.num_actions)
    reissue, tasklets = machine.pipeline_reissue, workload.tasklets
    each = max(tasklets, reissue)  # cycles in which every tasklet issues an instruction
    target = _find(workload) + update.target + k["update_store"] + k["update_list"]
    if workload.imbalance is None:
        owned = pipeline.random_cycles(rows, tasklets, reissue)
    else:
        owned = workload.imbalance * rows * max(1.0, reissue / tasklets)
    skips = 0 if tasklets == 1 else _draws(workload) + (workload.order == "RAN_REPLACEMENT")
    return KernelCycles(
        target=target * pipeline.share_cycles(rows, tasklets, reissue),
        apply=(k["update_follow"] + update.apply) * owned + each * tasklets * k["list_look"],
        share=each * (k["share"] + (k["share_in_ran"] if workload.order == "RAN" else 0.0)),
        barrier=2 * barrier_cycles(machine, workload.tasklets),
        random=each * skips * k["jump"],
        mram_wait=read_cycles(machine, workload, rows, target),
    )


def owners(entries: np.ndarray, tasklets: int) -> np.ndarray:
    """Return the tasklets that apply updates of entries: `arl_owner` of kernels/common/share.h."""
    return (np.asarray(entries, np.int64) * 25 & 255) * tasklets >> 8


def ownership_imbalance(
    machine: Machine, pairs: np.ndarray, tasklets: int, target_block: int
) -> float:
    """Return the time of the apply phases over that of an even split.

    Args:
      machine: gives the reissue interval.
      pairs: int [n], s * A + a of a DPU's rows, in the order in which they are trained.
      tasklets: t.
      target_block: B; the last block may be shorter.

    Returns:
      Cycles of all blocks' apply phases over those of an even split, at least 1: the `imbalance` of
      a `DpuWorkload`.
    """
    pairs = np.asarray(pairs)
    if pairs.ndim != 1 or not len(pairs) or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs must be int [n], n at least 1, got {pairs.dtype} {pairs.shape}")
    whole("tasklets", tasklets, 1)
    whole("target_block", target_block, 1)
    block = np.arange(len(pairs)) // target_block
    slots = (block[-1] + 1) * tasklets
    loads = np.bincount(block * tasklets + owners(pairs, tasklets), minlength=slots)
    cycles = pipeline.round_robin_cycles(loads.reshape(-1, tasklets), machine.pipeline_reissue)
    even = len(pairs) * max(1.0, machine.pipeline_reissue / tasklets)
    return cycles / even


def _sequential_cycles(machine: Machine, workload: DpuWorkload, rows: int) -> KernelCycles:
    """Return the cycles of one tasklet that updates row by row, and waits for its reads."""
    update = update_instructions(workload.rule, workload.numerics, workload.num_actions)
    instructions = _find(workload) + update.total
    return KernelCycles(
        target=machine.pipeline_reissue * rows * (instructions - update.apply),
        apply=machine.pipeline_reissue * rows * update.apply,
        mram_wait=read_cycles(machine, workload, rows, instructions),
    )


def _find(workload: DpuWorkload) -> float:
    """Return the instructions by which an order finds its next row, beyond the sequential ones."""
    k = load_calibration()
    return {"RAN": k["lookup"], "RAN_REPLACEMENT": k["draw_row"]}.get(workload.order, 0.0)


def _draws(workload: DpuWorkload) -> bool:
    """Return whether the rule draws, so that tasklets must jump in a random stream."""
    return "draw" in check_rule(workload.rule, workload.numerics).target


def _permutation_cycles(machine: Machine, workload: DpuWorkload, rows: int) -> KernelCycles:
    """Return the cycles of one pass's permutations, within a block and of the blocks.

    The tasklets share the draws. Then one tasklet swaps the rows of a block, another the blocks.
    """
    k = load_calibration()
    reissue, tasklets = machine.pipeline_reissue, workload.tasklets
    block = int(k["random_block"])
    blocks = -(-rows // block)
    drawn = k["order_draw"] * pipeline.share_cycles(block - 1 + blocks - 1, tasklets, reissue)
    jumps = 0.0 if tasklets == 1 else max(tasklets, reissue) * k["jump"]
    swapped = block + blocks if tasklets == 1 else max(block, blocks)
    return KernelCycles(
        barrier=_ORDER_BARRIERS * barrier_cycles(machine, workload.tasklets),
        random=drawn + jumps + reissue * k["order_swap"] * swapped,
    )
