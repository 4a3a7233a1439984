"""Counters of DPUs and DPU sets, read from the host library."""

import ctypes
import dataclasses
from typing import Any

from pim_emu import host_library as lib


@dataclasses.dataclass(frozen=True)
class Counters:
    """Counters of one DPU's last launch, summed over its tasklets.

    Cycles and instructions are modelled. Instructions are estimated from the host's machine code,
    block by block. Cycles follow from the instructions, the sharing of the pipeline and the DMA
    engine (see `docs/pim-emu.md`).

    Attributes:
      cycles: clock cycles from the launch to the end of the last tasklet.
      instructions: instructions executed.
      dma_reads: transfers from MRAM to WRAM.
      dma_read_bytes: bytes that they moved.
      dma_writes: transfers from WRAM to MRAM.
      dma_write_bytes: bytes that they moved.
      dma_cycles: clock cycles in which the DMA engine was busy.
      heap_bytes: bytes of WRAM from the end of the variables to the last allocated byte; 0 if
        nothing was allocated.
    """

    cycles: int
    instructions: int
    dma_reads: int
    dma_read_bytes: int
    dma_writes: int
    dma_write_bytes: int
    dma_cycles: int
    heap_bytes: int


@dataclasses.dataclass(frozen=True)
class SetCounters:
    """Counters of a DPU set since its allocation; cycles and seconds are modelled.

    Attributes:
      bytes_to_dpus: bytes of per-DPU data that the host sent, without broadcasts.
      bytes_from_dpus: bytes that the host read.
      broadcast_bytes: bytes delivered by broadcasts, counted at each receiving DPU.
      launches: launches of the set.
      slowest_cycles: sum over the launches of the slowest DPU's clock cycles.
      transfer_seconds: seconds of all transfers, with ranks one after the other.
      launch_seconds: seconds that `slowest_cycles` take at the machine's clock.
    """

    bytes_to_dpus: int
    bytes_from_dpus: int
    broadcast_bytes: int
    launches: int
    slowest_cycles: int
    transfer_seconds: float
    launch_seconds: float


def read_counters(dpu: lib.SetHandle) -> Counters:
    """Return the counters of one DPU's last launch."""
    return Counters(**_read("pim_emu_get_counters", dpu, lib.CountersStructure()))


def read_set_counters(handle: lib.SetHandle) -> SetCounters:
    """Return the counters of a set since its allocation."""
    return SetCounters(**_read("pim_emu_get_set_counters", handle, lib.SetCountersStructure()))


def _read(function: str, handle: lib.SetHandle, raw: ctypes.Structure) -> dict[str, Any]:
    lib.call(function, handle, ctypes.byref(raw))
    return {name: getattr(raw, name) for name, *_ in raw._fields_}
