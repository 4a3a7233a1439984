"""Whether a workload fits the machine's memories."""

from pim_emu.cost.instructions import load_calibration
from pim_emu.cost.mram import staging_bytes
from pim_emu.cost.workload import Workload
from pim_emu.machine import Machine


def check_fits(machine: Machine, workload: Workload) -> None:
    """Refuse a workload that the machine cannot hold.

    MRAM holds the records, the tables and a reserve. WRAM holds the tables, the slots of a target
    block, two staging buffers (one is read while the other is used), RAN's permutation, the stacks
    and a reserve.

    Raises:
      ValueError: with what is needed and what there is.
    """
    calibration = load_calibration()
    if workload.dpus > machine.total_dpus:
        raise ValueError(f"{workload.dpus} DPUs asked for, {machine.name} has {machine.total_dpus}")
    if workload.tasklets > machine.max_tasklets:
        raise ValueError(
            f"{workload.tasklets} tasklets asked for, a DPU of {machine.name} has "
            f"{machine.max_tasklets}"
        )
    rows = max(workload.rows_per_dpu)
    mram = {
        "records": workload.chunk_bytes,
        "tables": workload.table_bytes,
        "reserve": int(calibration["mram_reserve"]),
    }
    _check_sum(f"A chunk of {rows:,} rows needs", "MRAM", machine.mram_bytes, mram)
    wram = {
        "tables": workload.table_bytes,
        "slots": int(calibration["slot_bytes"]) * workload.target_block,
        "staging": 2 * staging_bytes(machine, workload),
        "stacks": int(calibration["stack_bytes"]) * workload.tasklets,
        "reserve": int(calibration["wram_reserve"]),
    }
    if workload.order == "RAN":
        block = int(calibration["random_block"])
        wram["permutation"] = 2 * (block + -(-rows // block))
    size = f"{workload.num_states:,} states and {workload.num_actions:,} actions"
    _check_sum(
        f"{workload.rule} with {size}, target block {workload.target_block} and "
        f"{workload.tasklets} tasklets needs",
        "WRAM",
        machine.wram_bytes,
        wram,
    )


def _check_sum(what: str, memory: str, limit: int, parts: dict[str, int]) -> None:
    total = sum(parts.values())
    if total > limit:
        listed = " + ".join(f"{name} {size:,}" for name, size in parts.items())
        raise ValueError(f"{what} {total:,} B of {memory} ({listed}); a DPU has {limit:,} B")
