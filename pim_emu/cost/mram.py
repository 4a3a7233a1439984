"""Modelled cycles of the DMA engine that moves data between MRAM and WRAM.

One transfer of n bytes takes alpha + n / 2 cycles. Rows are staged in contiguous transfers of up to
2,048 bytes, except where rows lie so far apart that single records cost less.
"""

from pim_emu.cost.workload import Workload, align8
from pim_emu.machine import Machine


def dma_cycles(machine: Machine, size: int, *, write: bool = False) -> float:
    """Cycles to move `size` contiguous bytes, in transfers of the largest size.

    Raises:
      ValueError: if `size` is negative or not a multiple of the DMA alignment.
    """
    if size < 0 or size % machine.dma_alignment_bytes:
        raise ValueError(
            f"size must be a non-negative multiple of {machine.dma_alignment_bytes} B, got {size}"
        )
    alpha = machine.dma_write_alpha if write else machine.dma_read_alpha
    transfers = -(-size // machine.dma_max_bytes)
    return alpha * transfers + machine.dma_cycles_per_byte * size


def table_cycles(machine: Machine, workload: Workload) -> float:
    """Cycles to bring the tables into WRAM when a launch begins, and back when it ends.

    The host transfers to and from MRAM only.
    """
    size = workload.table_bytes
    return dma_cycles(machine, size) + dma_cycles(machine, size, write=True)


def read_cycles(machine: Machine, workload: Workload, rows: int) -> float:
    """Cycles to read the records of `rows` consecutive steps of a pass.

    SEQ reads the chunk as it lies, and RAN moves whole blocks. STR reads the span in which its
    rows lie, stride times as many bytes as it uses, or its records one by one if that is cheaper.
    RAN_REPLACEMENT reads records one by one.
    """
    if workload.order == "RAN_REPLACEMENT":
        return _gather_cycles(machine, workload, rows)
    if workload.order == "STR":
        return min(_span_cycles(machine, workload, rows), _gather_cycles(machine, workload, rows))
    return dma_cycles(machine, rows * workload.record_bytes)


def staging_bytes(machine: Machine, workload: Workload) -> int:
    """WRAM bytes of one staging buffer."""
    rows = workload.staged_rows
    size = rows * workload.record_bytes
    if workload.order == "STR" and _span_cycles(machine, workload, rows) <= _gather_cycles(
        machine, workload, rows
    ):
        size *= workload.stride
    return align8(size)


def _span_cycles(machine: Machine, workload: Workload, rows: int) -> float:
    return dma_cycles(machine, rows * workload.stride * workload.record_bytes)


def _gather_cycles(machine: Machine, workload: Workload, rows: int) -> float:
    """Single records: every tasklet waits out the latency, the engine serves one at a time.

    The engine's time for the smallest transfer is that of the random-read bandwidth, less than
    alpha because the transfers of different tasklets overlap.
    """
    size, smallest = workload.record_bytes, machine.dma_min_bytes
    smallest_cycles = machine.clock_hz * smallest / machine.random_read_bandwidth
    engine = smallest_cycles + machine.dma_cycles_per_byte * (size - smallest)
    latency = dma_cycles(machine, size)
    return max(rows * engine, -(-rows // workload.working_tasklets) * latency)
