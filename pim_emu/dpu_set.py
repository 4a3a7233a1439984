"""Sets of emulated DPUs from Python: load, broadcast, scatter, launch, gather."""

import ctypes
import dataclasses
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from pim_emu import host_library as lib
from pim_emu.program import Program


class DpuFault(lib.DpuError):
    """A DPU stopped: the message names the fault, the tasklet and the line.

    Attributes:
      fault: its name, such as "misaligned DMA".
      dpu: index of the first DPU in fault.
      log: what that DPU had printed.
    """

    def __init__(self, message: str, fault: str, dpu: int, log: str):
        super().__init__(message)
        self.fault, self.dpu, self.log = fault, dpu, log


@dataclasses.dataclass(frozen=True)
class Counters:
    """Of one DPU's last launch, sums over its tasklets. Cycles and instructions are modelled.

    `instructions` are estimated from the host's machine code, block by block; `cycles` follow from
    them, the pipeline's sharing and the DMA engine (docs/pim-emu.md says how).
    """

    cycles: int
    instructions: int
    dma_reads: int
    dma_read_bytes: int
    dma_writes: int
    dma_write_bytes: int
    dma_cycles: int  # in which the DMA engine was busy
    heap_bytes: (
        int  # of WRAM, from the end of the variables to the last byte allocated; 0: none was
    )


@dataclasses.dataclass(frozen=True)
class SetCounters:
    """Of a set since it was allocated. Seconds are modelled."""

    bytes_to_dpus: int
    bytes_from_dpus: int
    broadcast_bytes: int  # delivered: of each DPU that got them
    launches: int
    slowest_cycles: int  # sum over launches of the slowest DPU's cycles
    transfer_seconds: float
    launch_seconds: float


class DpuSet:
    """DPUs that run one program; a context manager that frees them.

    Args:
      dpus: how many, at least 1 and at most the machine's.
      program: to load at once.
      machine: name of the machine that is emulated, one of `available_machines()`.
    """

    def __init__(
        self, dpus: int, program: Program | str | Path | None = None, machine: str | None = None
    ):
        if dpus < 1:
            raise ValueError(f"dpus must be at least 1, got {dpus}")
        self._set: lib.SetHandle | None = lib.SetHandle()
        profile = f"machine={machine}".encode() if machine else None
        try:
            lib.call("dpu_alloc", ctypes.c_uint32(dpus), profile, ctypes.byref(self._set))
        except lib.DpuError:
            self._set = None
            raise
        self._dpus = lib.member_handles(self._set)
        if program is not None:
            self.load(program)

    def __len__(self) -> int:
        return len(self._dpus)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the DPUs. They cannot be used afterwards; closing again does nothing."""
        if self._set is not None:
            handle, self._set = self._set, None
            lib.call("dpu_free", handle)

    def load(self, program: Program | str | Path) -> None:
        """Load a program into all DPUs: WRAM and initialised MRAM variables begin anew."""
        path = program.path if isinstance(program, Program) else Path(program)
        lib.call("dpu_load", self._handle, os.fsencode(path), None)

    def broadcast(self, symbol: str, values: Any, offset: int = 0) -> None:
        """Write the same values to a symbol of all DPUs.

        Args:
          symbol: name of a variable, or "heap": the MRAM that no variable takes.
          values: an array, of the variable's type in C.
          offset: bytes from the symbol's start.

        Raises:
          DpuError: no such symbol, or the bytes do not fit it or its alignment.
        """
        data = _plain(values)
        lib.call(
            "dpu_broadcast_to",
            *(self._handle, _name(symbol), _offset(offset)),
            *(data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes), 0),
        )

    def scatter(self, symbol: str, values: Any, offset: int = 0) -> None:
        """Write a row of values to a symbol of each DPU, all in one transfer.

        Args:
          symbol: as for `broadcast`.
          values: [dpus, ...].
          offset: bytes from the symbol's start.

        Raises:
          ValueError: the rows are not as many as the DPUs.
          DpuError: as for `broadcast`.
        """
        data = _plain(values)
        if data.ndim < 1 or data.shape[0] != len(self):
            raise ValueError(f"values must have {len(self)} rows, one per DPU, got {data.shape}")
        self._push(lib.TO_DPU, symbol, data, offset)

    def gather(
        self, symbol: str, dtype: Any, shape: tuple[int, ...] | int = (), offset: int = 0
    ) -> np.ndarray:
        """Read values of a symbol from each DPU, all in one transfer.

        Args:
          symbol: as for `broadcast`.
          dtype: NumPy's name for the variable's type in C.
          shape: of one DPU's values.
          offset: bytes from the symbol's start.

        Returns:
          [dpus, *shape].
        """
        inner = (shape,) if isinstance(shape, int) else tuple(shape)
        data = _plain(np.empty((len(self), *inner), dtype))
        self._push(lib.FROM_DPU, symbol, data, offset)
        return data

    def launch(self) -> None:
        """Run the program on all DPUs and wait for the last.

        Raises:
          DpuFault: a DPU stopped.
          DpuError: no program is loaded.
        """
        handle = self._handle
        try:
            lib.call("dpu_launch", handle, lib.SYNCHRONOUS)
        except lib.DpuError:
            self._raise_fault()
            raise

    def logs(self) -> list[str]:
        """What each DPU printed in the last launch, up to 1 MiB."""
        return [_log(handle) for handle in self._dpus]

    def counters(self) -> list[Counters]:
        """Counters of each DPU's last launch."""
        found = []
        for handle in self._dpus:
            raw = lib.CountersStructure()
            lib.call("pim_emu_get_counters", handle, ctypes.byref(raw))
            fields = dataclasses.fields(Counters)
            found.append(Counters(**{field.name: getattr(raw, field.name) for field in fields}))
        return found

    def set_counters(self) -> SetCounters:
        """Transfers and launches of the set since it was allocated."""
        raw = lib.SetCountersStructure()
        lib.call("pim_emu_get_set_counters", self._handle, ctypes.byref(raw))
        fields = dataclasses.fields(SetCounters)
        return SetCounters(**{field.name: getattr(raw, field.name) for field in fields})

    @property
    def _handle(self) -> lib.SetHandle:
        if self._set is None:
            raise lib.DpuError("the set is closed")
        return self._set

    def _push(self, direction: int, symbol: str, data: np.ndarray, offset: int) -> None:
        handle, bytes_each = self._handle, data.nbytes // len(self)
        try:
            for index, dpu in enumerate(self._dpus):
                address = ctypes.c_void_p(data.ctypes.data + index * bytes_each)
                lib.call("dpu_prepare_xfer", dpu, address)
            lib.call(
                "dpu_push_xfer",
                *(handle, direction, _name(symbol), _offset(offset)),
                *(ctypes.c_size_t(bytes_each), 0),
            )
        except lib.DpuError:
            # What was prepared would stay prepared, and its memory goes.
            lib.call("dpu_prepare_xfer", handle, None)
            raise

    def _raise_fault(self) -> None:
        for index, handle in enumerate(self._dpus):
            name, message = ctypes.c_char_p(), ctypes.c_char_p()
            lib.call("pim_emu_get_fault", handle, ctypes.byref(name), ctypes.byref(message))
            if name.value:
                text = (message.value or b"").decode(errors="replace")
                raise DpuFault(text, name.value.decode(), index, _log(handle)) from None


def configure(
    *,
    seed: int | None = None,
    random: bool | None = None,
    checks: bool | None = None,
    timeout_seconds: float | None = None,
    quiet: bool | None = None,
) -> None:
    """Set how later launches of this process run; what is None stays as it is.

    Args:
      seed: of the order in which tasklets run.
      random: whether tasklets are chosen at random, not by their modelled clocks.
      checks: whether DMA transfers and barriers are checked, and transfers timed.
      timeout_seconds: after which a tasklet that calls nothing is stopped; 0 for never.
      quiet: whether messages on stderr are left out.
    """
    given = {
        "seed": seed,
        "random": random,
        "checks": checks,
        "timeout_seconds": timeout_seconds,
        "quiet": quiet,
    }
    for name, value in given.items():
        if value is not None:
            if not 0 <= float(value) <= 2**53 or math.isnan(float(value)):
                raise ValueError(f"{name} must be a number from 0 to 2**53, got {value}")
            lib.call("pim_emu_set", name.encode(), float(value))


def _plain(values: Any) -> np.ndarray:
    """As an array whose bytes can be copied."""
    data = np.ascontiguousarray(values)
    if data.dtype.hasobject:
        raise TypeError(f"values must be of a type that C has, got dtype {data.dtype}")
    return data


def _offset(offset: int) -> ctypes.c_uint32:
    if not 0 <= offset < 2**32:
        raise ValueError(f"offset must be from 0 to 2**32 - 1, got {offset}")
    return ctypes.c_uint32(offset)


def _name(symbol: str) -> bytes:
    return (lib.HEAP if symbol == "heap" else symbol).encode()


def _log(handle: lib.SetHandle) -> str:
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    try:
        lib.call(
            "dpulog_read_for_dpu",
            *(ctypes.c_void_p(handle.members.dpu), stream),
            allowed=lib.LOG_BUFFER_TOO_SMALL,
        )
    finally:
        libc.fclose(stream)
        log = ctypes.string_at(text, size.value).decode(errors="replace")
        libc.free(text)
    return log
