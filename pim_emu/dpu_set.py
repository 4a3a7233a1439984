"""Sets of emulated DPUs: load, broadcast, scatter, launch, gather."""

import ctypes
import os
import warnings
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from pim_emu import host_library as lib
from pim_emu import symbols
from pim_emu.arguments import shown, whole
from pim_emu.counters import Counters, SetCounters, read_counters, read_set_counters
from pim_emu.machine import available_machines
from pim_emu.program import DpuProgram, program_path

_MOST_DPUS = 2**32 - 2  # that can be asked for: one more means all


class DpuSet:
    """DPUs that run one program; a context manager that frees them on exit.

    A set that is never closed is freed, with a `ResourceWarning`, when nothing refers to it.

    Args:
      dpus: number of DPUs, from 1 to the machine's.
      program: program to load, from `build` or a path; None to load it later.
      machine: name of the emulated machine, one of `available_machines()`; if None,
        `$PIM_EMU_MACHINE` or the default machine.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if `dpus` is below 1, the machine is unknown, or the program is source code.
      DpuError: if too few DPUs are free, or the program cannot be loaded (see `load`).
    """

    def __init__(
        self, dpus: int, program: DpuProgram | str | Path | None = None, machine: str | None = None
    ):
        count = min(whole("dpus", dpus, 1), _MOST_DPUS)
        profile = None if machine is None else f"machine={_known(machine)}".encode()
        path = None if program is None else program_path(program)
        self._set = lib.SetHandle()
        try:
            lib.call("dpu_alloc", ctypes.c_uint32(count), profile, ctypes.byref(self._set))
        except lib.DpuError as error:
            if error.status != lib.TOO_FEW_DPUS:
                raise
            text = f"{error}; a DpuSet keeps its DPUs until it is closed"
            raise lib.DpuError(text, error.status) from None
        self._finalizer = weakref.finalize(self, _free_unclosed, self._set, count)
        try:
            self._machine = lib.machine_name(self._set)
            self._dpus = lib.member_handles(self._set)
            self._program: Path | None = None
            if path is not None:
                self.load(path)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._dpus)

    def __repr__(self) -> str:
        program = f"program {self._program.name}" if self._program else "no program"
        closed = "" if self._finalizer.alive else ", closed"
        return f"<DpuSet of {len(self)} DPUs, machine {self._machine}, {program}{closed}>"

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the DPUs, which cannot be used afterwards; closing again does nothing."""
        if self._finalizer.detach() is not None:
            lib.call("dpu_free", self._set)

    def load(self, program: DpuProgram | str | Path) -> None:
        """Load a program into all DPUs; WRAM and initialised MRAM variables are reset.

        Args:
          program: a program from `build`, or the path of one.

        Raises:
          TypeError: if it is neither.
          ValueError: if it is a source file, or source code.
          DpuError: if the file cannot be read, is not a DPU program, or does not fit the machine;
            if the set is closed.
        """
        path = program_path(program)
        lib.call("dpu_load", self._handle, os.fsencode(path), None)
        self._program = path

    def broadcast(self, symbol: str, values: Any, offset: int = 0) -> None:
        """Write the same values to a symbol of all DPUs.

        Args:
          symbol: name of a variable, or "heap" for the MRAM not used by variables.
          values: an array or number of the variable's C type: `np.uint32(5)` rather than 5, which
            becomes an int64.
          offset: bytes from the symbol's start.

        Raises:
          TypeError: if the symbol is not a string, or the values have no C type.
          ValueError: if `offset` is not from 0 to 2**32 - 1.
          DpuError: if the symbol does not exist, or the bytes do not fit it or its alignment; if no
            program is loaded; if the set is closed.
        """
        self._check_open()
        name, at = symbols.symbol_name(symbol), _offset(offset)
        data = symbols.sent_array(symbol, values)
        self._transfer(
            *("dpu_broadcast_to", symbol, data.dtype, name, at),
            *(data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes), 0),
        )

    def scatter(self, symbol: str, values: Any, offset: int = 0) -> None:
        """Write one row of values to a symbol of each DPU, in one transfer.

        Args:
          symbol: as for `broadcast`.
          values: [dpus, ...], of the variable's C type.
          offset: bytes from the symbol's start.

        Raises:
          TypeError: as for `broadcast`.
          ValueError: if there is not one row for each DPU; `offset` as for `broadcast`.
          DpuError: as for `broadcast`.
        """
        self._check_open()
        name, at = symbols.symbol_name(symbol), _offset(offset)
        data = symbols.sent_array(symbol, values)
        if data.ndim < 1 or data.shape[0] != len(self):
            raise ValueError(
                f"symbol {symbol!r}: values must have {len(self)} rows, one per DPU, got shape "
                f"{data.shape}"
            )
        self._push(lib.TO_DPU, symbol, name, data, at)

    def gather(
        self, symbol: str, dtype: Any, shape: tuple[int, ...] | int = (), offset: int = 0
    ) -> np.ndarray:
        """Read the values of a symbol from each DPU, in one transfer.

        Args:
          symbol: as for `broadcast`.
          dtype: NumPy dtype of the variable's C type.
          shape: shape of one DPU's values.
          offset: bytes from the symbol's start.

        Returns:
          [dpus, *shape].

        Raises:
          TypeError: if the symbol is not a string, or `dtype` or `shape` is invalid.
          ValueError: if a length is negative; `offset` as for `broadcast`.
          DpuError: as for `broadcast`.
        """
        self._check_open()
        name, at = symbols.symbol_name(symbol), _offset(offset)
        kind, inner = symbols.read_layout(symbol, dtype, shape)
        data = np.empty((len(self), *inner), kind)
        self._push(lib.FROM_DPU, symbol, name, data, at)
        return data

    def launch(self) -> None:
        """Run the program on all DPUs and wait for the last.

        Raises:
          EmulatorFault: a DPU stopped.
          DpuError: no program is loaded; the set is closed.
        """
        handle = self._handle
        try:
            lib.call("dpu_launch", handle, lib.SYNCHRONOUS)
        except lib.DpuError as error:
            lib.raise_fault(self._dpus, error.status)
            raise

    def logs(self) -> list[str]:
        """Return the output of each DPU in the last launch, up to 1 MiB.

        Raises:
          DpuError: if no program is loaded, or the set is closed.
        """
        self._check_open()
        return [lib.log(dpu) for dpu in self._dpus]

    def counters(self) -> list[Counters]:
        """Return the counters of each DPU's last launch.

        Raises:
          DpuError: if the set is closed.
        """
        self._check_open()
        return [read_counters(dpu) for dpu in self._dpus]

    def set_counters(self) -> SetCounters:
        """Return the counters of the set's transfers and launches since its allocation.

        Raises:
          DpuError: if the set is closed.
        """
        return read_set_counters(self._handle)

    @property
    def _handle(self) -> lib.SetHandle:
        self._check_open()
        return self._set

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise lib.DpuError("the set is closed")

    def _push(
        self, direction: int, symbol: str, name: bytes, data: np.ndarray, offset: ctypes.c_uint32
    ) -> None:
        bytes_each = data.nbytes // len(self)
        try:
            for index, dpu in enumerate(self._dpus):
                address = ctypes.c_void_p(data.ctypes.data + index * bytes_each)
                lib.call("dpu_prepare_xfer", dpu, address)
            self._transfer(
                *("dpu_push_xfer", symbol, data.dtype, direction, name, offset),
                *(ctypes.c_size_t(bytes_each), 0),
            )
        except BaseException:
            # What was prepared would stay prepared, and its memory goes.
            lib.call("dpu_prepare_xfer", self._set, None)
            raise

    def _transfer(self, function: str, symbol: str, dtype: np.dtype, *arguments: object) -> None:
        try:
            lib.call(function, self._set, *arguments)
        except lib.DpuError as error:
            raise symbols.explained(error, symbol, dtype, self._program) from None


def _free_unclosed(handle: lib.SetHandle, dpus: int) -> None:
    lib.library().dpu_free(handle)  # not `call`: another call's complaint may be waiting
    warnings.warn(f"a DpuSet of {dpus} DPUs was never closed", ResourceWarning, stacklevel=2)


def _known(machine: str) -> str:
    expected = f"machine must be one of {', '.join(available_machines())}, got {shown(machine)}"
    if not isinstance(machine, str):
        raise TypeError(expected)
    if machine not in available_machines():
        raise ValueError(expected)
    return machine


def _offset(offset: int) -> ctypes.c_uint32:
    return ctypes.c_uint32(whole("offset", offset, 0, 2**32 - 1))
