"""Modelled roofline of one DPU: arithmetic or memory as the bound of a tabular update.

Operations are the additions, products and comparisons of the update's mathematics. A core that
emulates floating point therefore stays far below the ceiling of its pipeline.
Reference: Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009.
"""

import dataclasses

from accel_rl.arguments import whole, within
from accel_rl.pim.cost.instructions import arithmetic_operations, check_rule, update_instructions
from accel_rl.pim.cost.kernel import pass_cycles
from accel_rl.pim.cost.limits import check_fits
from accel_rl.pim.cost.mram import dma_cycles
from accel_rl.pim.cost.workload import DpuWorkload
from pim_emu.machine import Machine

_LONG_CHUNK = 1 << 20  # rows of a pass of which the beginning does not matter


@dataclasses.dataclass(frozen=True)
class Roofline:
    """Modelled roofline of one DPU for one rule and numerics.

    Attributes:
      operations_per_update: additions, products and comparisons of one update.
      mram_bytes_per_update: bytes that one update reads from MRAM.
      operations_per_byte: operations per byte of MRAM traffic, the horizontal axis.
      attained_operations: operations/s of the modelled kernel, with its lists, barriers and
        imbalance.
      attained_updates: updates/s of the modelled kernel.
      peak_updates: updates/s of the update's instructions alone in a full pipeline.
      instruction_ceiling: instructions/s, at best one operation each.
      mram_bandwidth: B/s in the largest transfers, a ceiling that rises with operations/B.
      mram_updates: updates/s if MRAM traffic were the only cost.
      wram_bandwidth: B/s of WRAM.
      wram_updates: updates/s if WRAM traffic were the only cost.
    """

    operations_per_update: int
    mram_bytes_per_update: int
    operations_per_byte: float
    attained_operations: float
    attained_updates: float
    peak_updates: float
    instruction_ceiling: float
    mram_bandwidth: float
    mram_updates: float
    wram_bandwidth: float
    wram_updates: float


def peak_updates(machine: Machine, instructions: float, tasklets: int) -> float:
    """Return the updates/s of a DPU with equally loaded tasklets that only update.

    The rate is clock / instructions. Fewer tasklets than the reissue interval leave issue slots
    empty, and reach t / 11 of that.

    Args:
      machine: from `load_machine`.
      instructions: instructions of one update, above 0.
      tasklets: t, tasklets that update, at least 1.
    """
    within("instructions", instructions, "(0, inf)")
    whole("tasklets", tasklets, 1)
    return machine.clock_hz / instructions * min(1.0, tasklets / machine.pipeline_reissue)


def roofline(
    machine: Machine,
    rule: str,
    numerics: str,
    num_actions: int,
    *,
    record_bytes: int = 8,
    target_block: int = 128,
    tasklets: int = 16,
) -> Roofline:
    """Return the modelled roofline of one DPU that streams records in SEQ order.

    WRAM traffic is the record, the entries of the next state that the rule looks at, and the entry
    that is read and written, each of 4 bytes.

    Args:
      machine: from `load_machine`.
      rule: name of an update rule.
      numerics: one of `NUMERICS`.
      num_actions: A, entries of a state.
      record_bytes: bytes of a record, 8 or 16.
      target_block: rows whose targets are computed before any is applied.
      tasklets: of the DPU.
    """
    workload = DpuWorkload(
        (_LONG_CHUNK,),
        num_states=1,
        num_actions=num_actions,
        rule=rule,
        numerics=numerics,
        record_bytes=record_bytes,
        target_block=target_block,
        tasklets=tasklets,
    )
    check_fits(machine, workload)
    cycles = pass_cycles(machine, workload, _LONG_CHUNK).total
    attained = _LONG_CHUNK * machine.clock_hz / cycles
    operations = arithmetic_operations(rule, num_actions)
    work = check_rule(rule, numerics)
    entries = num_actions * work.target_per_action.get("entry", 0) + work.target.get("lookup", 0)
    wram_bytes = record_bytes + workload.value_bytes * (entries + 2)
    mram_bandwidth = (
        machine.clock_hz * machine.dma_max_bytes / dma_cycles(machine, machine.dma_max_bytes)
    )
    instructions = update_instructions(rule, numerics, num_actions).total
    return Roofline(
        operations_per_update=operations,
        mram_bytes_per_update=record_bytes,
        operations_per_byte=operations / record_bytes,
        attained_operations=attained * operations,
        attained_updates=attained,
        peak_updates=peak_updates(machine, instructions, tasklets),
        instruction_ceiling=machine.clock_hz,
        mram_bandwidth=mram_bandwidth,
        mram_updates=mram_bandwidth / record_bytes,
        wram_bandwidth=machine.wram_bandwidth,
        wram_updates=machine.wram_bandwidth / wram_bytes,
    )
