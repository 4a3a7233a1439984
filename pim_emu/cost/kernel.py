"""Modelled cycles of the training kernel on one DPU.

A pass takes the rows in target blocks of B. The tasklets share a block's targets, meet at a
barrier, apply the updates of the pairs (s, a) that they own, in row order, and meet again. Rows are
staged from MRAM while earlier ones are worked on. With B = 1 every update sees the one before it:
one tasklet does them all, the others can only fetch.
"""

import dataclasses

from pim_emu.cost import pipeline
from pim_emu.cost.instructions import load_calibration, update_instructions
from pim_emu.cost.mram import read_cycles, table_cycles
from pim_emu.cost.workload import Workload
from pim_emu.machine import Machine


@dataclasses.dataclass(frozen=True)
class KernelCycles:
    """Modelled cycles of a DPU, by what they are spent on.

    Attributes:
      target: cycles in which records are decoded and targets computed.
      apply: cycles in which entries are moved towards their targets.
      barrier: cycles at barriers.
      shuffle: cycles of RAN's permutations, one tasklet at work.
      mram_wait: cycles of reading rows that no instruction hides.
      tables: cycles of moving tables between MRAM and WRAM.
    """

    target: float = 0.0
    apply: float = 0.0
    barrier: float = 0.0
    shuffle: float = 0.0
    mram_wait: float = 0.0
    tables: float = 0.0

    @property
    def total(self) -> float:
        """All cycles."""
        return sum(dataclasses.astuple(self))

    def __add__(self, other: "KernelCycles") -> "KernelCycles":
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return KernelCycles(*(mine + theirs for mine, theirs in pairs))

    def __mul__(self, factor: int) -> "KernelCycles":
        return KernelCycles(*(factor * part for part in dataclasses.astuple(self)))


def run_cycles(machine: Machine, workload: Workload) -> KernelCycles:
    """Cycles of all launches, on the DPU that takes longest."""
    chunks = (pass_cycles(machine, workload, rows) for rows in set(workload.rows_per_dpu))
    slowest = max(chunks, key=lambda cycles: cycles.total)
    tables = KernelCycles(tables=table_cycles(machine, workload))
    return slowest * workload.passes + tables * workload.launches


def pass_cycles(machine: Machine, workload: Workload, rows: int) -> KernelCycles:
    """Cycles of one pass over a chunk of `rows` rows: what is there, the last block included."""
    staged = workload.staged_rows
    stages, rest = divmod(rows, staged)
    cycles = _stage_cycles(machine, workload, staged) * stages
    cycles += _stage_cycles(machine, workload, rest)
    if workload.tasklets > 1:  # nothing can be worked on while the first rows are read
        cycles += KernelCycles(mram_wait=read_cycles(machine, workload, min(rows, staged)))
    if workload.order == "RAN" and rows:
        cycles += KernelCycles(shuffle=_shuffle_cycles(machine, rows))
    return cycles


def _stage_cycles(machine: Machine, workload: Workload, rows: int) -> KernelCycles:
    """Cycles of rows that are staged together, the next ones being read meanwhile."""
    blocks, rest = divmod(rows, workload.target_block)
    cycles = block_cycles(machine, workload, workload.target_block) * blocks
    cycles += block_cycles(machine, workload, rest)
    # A tasklet waits for its own transfer: a single one hides nothing.
    hidden = cycles.total if workload.tasklets > 1 else 0.0
    wait = max(0.0, read_cycles(machine, workload, rows) - hidden)
    return cycles + KernelCycles(mram_wait=wait)


def block_cycles(machine: Machine, workload: Workload, rows: int) -> KernelCycles:
    """Cycles of a target block of `rows` rows whose records are in WRAM."""
    if rows == 0:
        return KernelCycles()
    k = load_calibration()
    update = update_instructions(workload.rule, workload.numerics, workload.num_actions)
    reissue, tasklets = machine.pipeline_reissue, workload.working_tasklets
    find = {"RAN": k["lookup"], "RAN_REPLACEMENT": k["draw_row"]}.get(workload.order, 0.0)
    if workload.target_block == 1:
        return KernelCycles(
            target=reissue * rows * (find + update.target), apply=reissue * rows * update.apply
        )
    shared = pipeline.even_cycles(rows, tasklets, reissue)
    if workload.imbalance is None:
        owned = pipeline.random_cycles(rows, tasklets, reissue)
    else:
        owned = workload.imbalance * rows * max(1.0, reissue / tasklets)
    target = shared * (find + update.target + k["slot_store"])
    apply = owned * (k["slot_load"] + update.apply)
    if tasklets == 1:
        return KernelCycles(target=target, apply=apply)
    scan = k["slot_scan"] * rows * max(tasklets, reissue)
    return KernelCycles(target, apply + scan, 2 * _barrier_cycles(machine, tasklets))


def _barrier_cycles(machine: Machine, tasklets: int) -> float:
    """Cycles of a barrier that all tasklets reach together: the lock admits one at a time."""
    k = load_calibration()
    serial = tasklets * k["barrier_enter"] + (tasklets - 1) * k["barrier_wake"]
    return machine.pipeline_reissue * serial


def _shuffle_cycles(machine: Machine, rows: int) -> float:
    """Cycles of one pass's permutations: within a block, and of the blocks."""
    k = load_calibration()
    block = int(k["random_block"])
    swaps = (block - 1) + (-(-rows // block) - 1)
    return machine.pipeline_reissue * k["shuffle"] * swaps
