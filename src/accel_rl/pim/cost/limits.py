"""Check of a workload against the machine's memory sizes."""

from accel_rl.pim.cost.instructions import load_calibration
from accel_rl.pim.cost.lanes import lane_buffer_bytes, lane_wram_parts, working_tasklets
from accel_rl.pim.cost.mram import buffer_bytes
from accel_rl.pim.cost.workload import DpuWorkload, align8
from pim_emu.machine import Machine


def check_fits(machine: Machine, workload: DpuWorkload) -> None:
    """Refuse a workload that the machine cannot hold.

    MRAM holds the records, the tables, by time a list of entries, and a reserve; WRAM what
    `wram_parts` lists.
    """
    calibration = load_calibration()
    for asked, what, owner, limit in (
        (workload.dpus, "DPUs", machine.name, machine.total_dpus),
        (workload.tasklets, "tasklets", f"a DPU of {machine.name}", machine.max_tasklets),
    ):
        if asked > limit:
            raise ValueError(f"{asked} {what} asked for, {owner} has {limit}")
    rows = max(workload.rows_per_dpu)
    mram = {
        "records": workload.chunk_bytes,
        "tables": workload.table_bytes if workload.owner is None else workload.pushed_bytes,
        "lists": 0 if workload.owner else align8(2 * workload.num_states * workload.num_actions),
        "reserve": int(calibration["mram_reserve"]),
    }
    _check_sum(f"A chunk of {rows:,} rows needs", "MRAM", machine.mram_bytes, mram)
    size = f"{workload.num_states:,} states and {workload.num_actions:,} actions"
    layout = f"target block {workload.target_block}"
    if workload.owner is not None:
        layout = f"{workload.owner.lanes} lanes"
    _check_sum(
        f"{workload.rule} with {size}, {layout} and {workload.tasklets} tasklets needs",
        "WRAM",
        machine.wram_bytes,
        wram_parts(machine, workload),
    )


def wram_parts(machine: Machine, workload: DpuWorkload) -> dict[str, int]:
    """Return the bytes of each part of WRAM, as the kernel lays it out.

    The parts are tables, updates of a block, heads of their lists (one for each pair of tasklets),
    codebook of rewards, row buffers, stacks, a reserve, and RAN's permutations. By owner they are
    values of runs and of next states, lanes, row buffers, stacks and a reserve.
    """
    if workload.owner is not None:
        rows = lane_buffer_bytes(machine, workload) * working_tasklets(workload)
        return lane_wram_parts(workload) | {"rows": rows}
    k, tasklets = load_calibration(), workload.tasklets
    sequential = workload.target_block == 1
    parts = {
        "tables": workload.table_bytes,
        "updates": int(k["update_bytes"]) * workload.target_block,
        "lists": 0 if sequential else int(k["list_bytes"]) * tasklets**2,
        "codebook": int(k["codebook_bytes"]),
        "rows": buffer_bytes(machine, workload)
        * (1 if sequential or workload.order == "RAN" else tasklets),
        "stacks": int(k["stack_bytes"]) * tasklets,
        "reserve": int(k["wram_reserve"]),
    }
    if workload.order == "RAN":
        block = int(k["random_block"])
        blocks = -(-max(workload.rows_per_dpu) // block)
        rounded = 1 << (blocks - 1).bit_length()  # so that not every length takes its own program
        # Two orders of rows, of a byte each; an order of blocks; what each swap swaps with.
        parts["permutations"] = 2 * block + 2 * rounded + 2 * (block - 1 + rounded)
    return parts


def _check_sum(what: str, memory: str, limit: int, parts: dict[str, int]) -> None:
    total = sum(parts.values())
    if total > limit:
        listed = " + ".join(f"{name} {size:,}" for name, size in parts.items())
        raise ValueError(f"{what} {total:,} B of {memory} ({listed}); a DPU has {limit:,} B")
