"""Loaded programs, their symbols, and the values of variables."""

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from pim_emu import host_library as lib
from pim_emu.program import variables
from pim_emu.toolchain.elf import ElfFile


class DpuSymbol:
    """Symbol of a program, with its address and size.

    Attributes:
      name: name of the variable.
      structure: `struct dpu_symbol_t`.
    """

    def __init__(self, name: str, structure: lib.SymbolStructure):
        self.name, self.structure = name, structure

    def __repr__(self) -> str:
        return f"<DpuSymbol {self.name} at {self.value():#x}, {self.size()} B>"

    def value(self) -> int:
        """Return the address: MRAM from 0x08000000, WRAM from 0."""
        return self.structure.address

    def size(self) -> int:
        """Return the size in bytes."""
        return self.structure.size


class VendorProgram:
    """Program of a set of DPUs; its symbols are known as long as a DPU holds it.

    Attributes:
      pointer: `struct dpu_program_t *`.
      variables: names of its variables, sorted; none if `path` is None.
    """

    def __init__(self, pointer: ctypes.c_void_p, path: Path | None = None):
        self.pointer = pointer
        self.variables = [] if path is None else variables(path)
        self._names = None if path is None else frozenset(ElfFile(path).symbols())

    def get_symbol(self, symbol: str) -> DpuSymbol | None:
        """Return a symbol by name, or None if the program does not have it."""
        if self._names is not None and symbol not in self._names:
            return None  # the library would complain on stderr
        found = lib.SymbolStructure()
        try:
            lib.call("dpu_get_symbol", self.pointer, os.fsencode(symbol), ctypes.byref(found))
        except lib.DpuError as error:
            if error.status != lib.UNKNOWN_SYMBOL:
                raise
            return None
        return DpuSymbol(symbol, found)

    def fetch_all_symbols(self) -> dict[str, DpuSymbol]:
        """Return the program's variables by name."""
        found = {name: self.get_symbol(name) for name in self.variables}
        return {name: symbol for name, symbol in found.items() if symbol is not None}


def common_program(handle: lib.SetHandle, last: VendorProgram | None) -> VendorProgram | None:
    """Return the program that all DPUs of a set hold, or None; `last` is its first DPU's."""
    pointer = ctypes.c_void_p()
    try:
        lib.call("dpu_get_common_program", ctypes.byref(handle), ctypes.byref(pointer))
    except lib.DpuError:
        return None
    if last is not None and last.pointer.value == pointer.value:
        return last
    return VendorProgram(pointer)


class DpuVariable:
    """Values of a variable on the DPUs of a set, as they were when it was read.

    Each method returns the value of a single DPU, or a list with one entry per DPU. An array is a
    memoryview of its elements.
    """

    def __init__(self, name: str, contents: list[memoryview]):
        self._name, self._contents = name, contents

    def __repr__(self) -> str:
        return f"<DpuVariable {self._name} of {len(self._contents)} DPUs>"

    def data(self) -> memoryview | list[memoryview]:
        """Return the bytes."""
        return self._contents[0] if len(self._contents) == 1 else self._contents

    def int8(self) -> object:
        """Return the values as `int8_t`."""
        return self._values("b")

    def uint8(self) -> object:
        """Return the values as `uint8_t`."""
        return self._values("B")

    def int16(self) -> object:
        """Return the values as `int16_t`."""
        return self._values("h")

    def uint16(self) -> object:
        """Return the values as `uint16_t`."""
        return self._values("H")

    def int32(self) -> object:
        """Return the values as `int32_t`."""
        return self._values("i")

    def uint32(self) -> object:
        """Return the values as `uint32_t`."""
        return self._values("I")

    def int64(self) -> object:
        """Return the values as `int64_t`."""
        return self._values("q")

    def uint64(self) -> object:
        """Return the values as `uint64_t`."""
        return self._values("Q")

    def float(self) -> object:
        """Return the values as `float`."""
        return self._values("f")

    def double(self) -> object:
        """Return the values as `double`."""
        return self._values("d")

    def _values(self, code: str) -> object:
        size, each = self._contents[0].nbytes, struct.calcsize(code)
        if size % each:
            raise lib.DpuError(f"variable {self._name!r} has {size} B, no multiple of {each}")
        values = [_single(view.cast(code)) for view in self._contents]  # type: ignore[call-overload]
        return _single(values)


def _single(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else values
