"""Modelled cycles of the DMA engine that moves data between MRAM and WRAM.

One transfer of n bytes takes alpha + n / 2 cycles. The engine serves transfers one after the other,
and overlaps their latencies. Each tasklet reads the rows of its own share. In RAN, which takes
whole blocks of rows, one tasklet reads for all.
"""

import numpy as np

from accel_rl.pim.cost.instructions import load_calibration
from accel_rl.pim.cost.workload import DpuWorkload
from pim_emu.cost import pipeline
from pim_emu.machine import Machine

_NARROW, _WIDE = 8, 16  # bytes of records; buffers are made for the narrow, and hold one wide


def dma_cycles(machine: Machine, size: int, *, write: bool = False) -> float:
    """Return the cycles to move `size` contiguous bytes, in transfers of the largest size."""
    alpha = machine.dma_write_alpha if write else machine.dma_read_alpha
    transfers = -(-size // machine.dma_max_bytes)
    return alpha * transfers + machine.dma_cycles_per_byte * size


def table_cycles(machine: Machine, workload: DpuWorkload) -> float:
    """Return the cycles to move the tables to WRAM at the start of a launch, and back at its end.

    The moves are needed because the host transfers to and from MRAM only. Where DPUs have lists of
    visited entries, only these move back.
    """
    size = workload.table_bytes
    if workload.listed:
        return dma_cycles(machine, size) + _listed_cycles(machine, workload)
    return dma_cycles(machine, size) + dma_cycles(machine, size, write=True)


def _listed_cycles(machine: Machine, workload: DpuWorkload) -> float:
    """Return the cycles to move listed entries to MRAM: tasklets take pieces of the list in turn.

    Tasklets read their pieces at the same time and wait for the engine. They are done with copying
    one after the other, so each waits for the latency of its own writes only.
    """
    k, tasklets, tables = load_calibration(), workload.tasklets, workload.tables
    piece = min(workload.listed, int(k["visited_piece"]))
    entries = np.minimum(workload.listed - np.arange(0, workload.listed, piece), piece)
    instructions = tables * (k["visited_read"] + k["visited_copy"] * entries)
    loads = np.bincount(np.arange(len(entries)) % tasklets, instructions, tasklets)
    size, rounds = 2 * piece, -(-len(entries) // tasklets)
    wait = (len(entries) - rounds) * occupied_cycles(machine, size) + rounds * (
        dma_cycles(machine, size)
        + tables * dma_cycles(machine, piece * workload.value_bytes, write=True)
    )
    return pipeline.round_robin_cycles(loads, machine.pipeline_reissue) + wait


def read_cycles(machine: Machine, workload: DpuWorkload, rows: int, instructions: float) -> float:
    """Return the cycles in which no tasklet computes because rows of a block are being read.

    A tasklet reads ahead when it has finished its share. Shares are equal, so all tasklets finish
    at the same time and wait while the engine serves them in turn. Records that are read one by one
    are read during the share, while other tasklets compute.

    Args:
      machine: constants of the engine.
      workload: the run.
      rows: rows of the block; with B = 1, of the pass.
      instructions: instructions of a tasklet for each row before it reads the next one.
    """
    if rows == 0:
        return 0.0
    if workload.order == "RAN":
        block = int(load_calibration()["random_block"])
        return rows / block * dma_cycles(machine, block * workload.record_bytes)
    share = -(-rows // workload.working_tasklets)
    readers = -(-rows // share)
    if _is_single(workload):
        reissue = machine.pipeline_reissue
        computing = max(readers, reissue) * instructions
        latency = dma_cycles(machine, workload.record_bytes)
        occupied = readers * occupied_cycles(machine, workload.record_bytes)
        return share * max(reissue * instructions + latency - computing, occupied - computing, 0.0)
    most = (buffer_bytes(machine, workload) // workload.record_bytes - 1) // workload.step + 1
    full, rest = divmod(share, most)

    def wait(count: int) -> float:
        size = ((count - 1) * workload.step + 1) * workload.record_bytes
        return (readers - 1) * occupied_cycles(machine, size) + dma_cycles(machine, size)

    return full * wait(most) + (wait(rest) if rest else 0.0)


def buffer_bytes(machine: Machine, workload: DpuWorkload) -> int:
    """Return the WRAM bytes of a tasklet's row buffer; for RAN, of the one that all share."""
    if workload.order == "RAN":
        block = int(load_calibration()["random_block"])
        # Blocks that two consecutive target blocks can touch, the short one among them.
        blocks = 1 if workload.target_block == 1 else (2 * workload.target_block - 2) // block + 3
        return blocks * block * _WIDE
    if _is_single(workload):
        return _WIDE
    if workload.target_block == 1:
        return machine.dma_max_bytes
    share = -(-workload.target_block // workload.tasklets)
    return min(max(share * workload.step * _NARROW, _WIDE), machine.dma_max_bytes)


def _is_single(workload: DpuWorkload) -> bool:
    """Return whether records are read one by one, instead of a span that contains them."""
    if workload.order == "RAN_REPLACEMENT":
        return True
    return workload.step > int(load_calibration()["farthest_step"])


def occupied_cycles(machine: Machine, size: int) -> float:
    """Return the cycles in which a transfer keeps the engine from serving another.

    The smallest transfer takes the cycles of the random-read bandwidth. They are fewer than alpha,
    because latencies of different tasklets' transfers overlap.
    """
    smallest = machine.dma_min_bytes
    least = machine.clock_hz * smallest / machine.random_read_bandwidth
    return least + machine.dma_cycles_per_byte * (size - smallest)
