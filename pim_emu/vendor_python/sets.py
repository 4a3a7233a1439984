"""Sets of DPUs, as host programs in Python know them."""

import ctypes
import os
import warnings
from collections.abc import Callable
from typing import Any

from pim_emu import host_library as lib
from pim_emu.arguments import shown, whole
from pim_emu.vendor_python.allocation import Allocation, allocate
from pim_emu.vendor_python.logs import (
    chosen_streams,
    each_stream,
    or_standard_output,
    write_logs,
)
from pim_emu.vendor_python.members import DpuMembers, SetState
from pim_emu.vendor_python.program import DpuSymbol, DpuVariable, VendorProgram, common_program
from pim_emu.vendor_python.sources import Binary, Sources, binary_file, compiled
from pim_emu.vendor_python.transfers import transfer


class VendorDpuSet(DpuMembers):
    """Set of DPUs; the variables of its program are attributes.

    Reading `dpus.name` copies the variable from all DPUs of the set; assigning a buffer, or a list
    of one per DPU, copies to them. Where a variable has a method's name, `copy` alone reaches it.
    Loading a program removes attributes of the set with the names of its variables.

    Args:
      nr_dpus: number of DPUs, or `ALLOCATE_ALL`, which is the default.
      nr_ranks: number of ranks, in the place of `nr_dpus`.
      profile: "key=value,...".
      binary: program to load: its path, or its bytes.
      c_source: C source to compile and load: a path, an open file, or a list of them.
      asm_source: refused, as assembly is not emulated.
      log: stream, or a list of one per DPU, that gets the output of each launch.
      async_mode: queue copies, launches and callbacks, unless a call says otherwise.

    Raises:
      DpuError: if DPUs cannot be allocated, or the program cannot be loaded.
    """

    def __init__(
        self,
        nr_dpus: int | None = None,
        nr_ranks: int | None = None,
        profile: str = "",
        binary: Binary | None = None,
        c_source: Sources | None = None,
        asm_source: Sources | None = None,
        log: Any = None,
        async_mode: bool = False,
    ):
        allocation = Allocation(allocate(nr_dpus, nr_ranks, profile), bool(async_mode))
        self._state = SetState(allocation, allocation.handle)
        try:
            self._add_members()
            for dpu, stream in zip(self, each_stream(self.dpus(), log), strict=True):
                dpu._state.log = stream
            if binary is not None or c_source is not None or asm_source is not None:
                self.load(binary, c_source, asm_source)
        except BaseException:
            allocation.free()
            raise

    def __getattr__(self, name: str) -> DpuVariable:
        if name.startswith("__") or name == "_state":  # asked by Python, of sets half made too
            raise AttributeError(f"a DpuSet has no {name}")
        program = self._program()
        symbol = program.get_symbol(name) if program else None
        if program is None or symbol is None:
            has = f"it has {', '.join(program.variables)}" if program else "no program is loaded"
            raise AttributeError(f"no method or variable {name!r}; {has}")
        memory = memoryview(bytearray(len(self) * symbol.size()))
        rows = [memory[i * symbol.size() :][: symbol.size()] for i in range(len(self))]
        self.copy(rows, symbol, async_mode=False)
        return DpuVariable(name, rows)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_state":
            object.__setattr__(self, name, value)
            return
        if hasattr(type(self), name):
            raise AttributeError(f"{name!r} is a method: write a variable of that name by copy")
        program = self._program()
        symbol = program.get_symbol(name) if program else None
        if symbol is not None:
            self.__dict__.pop(name, None)  # set before a program had this variable
            self.copy(symbol, value)
            return
        if program is not None:
            text = (
                f"the program has no variable {name!r}: the set gets an attribute, as the vendor's"
            )
            warnings.warn(text, stacklevel=2)
        object.__setattr__(self, name, value)

    def load(
        self,
        binary: Binary | None = None,
        c_source: Sources | None = None,
        asm_source: Sources | None = None,
    ) -> VendorProgram:
        """Load a program: a binary, or C source, which is compiled with one tasklet.

        Raises:
          DpuError: if not exactly one is given, the source does not compile, or the program cannot
            be loaded.
        """
        if asm_source is not None:
            raise lib.DpuError("asm_source: assembly is not emulated")
        handle, pointer = self._open(), ctypes.c_void_p()
        if binary is not None and c_source is None:
            path = binary_file(binary)
        elif c_source is not None and binary is None:
            path = compiled(c_source)
        else:
            raise lib.DpuError("load takes either binary or c_source")
        self._call("dpu_load", handle, os.fsencode(path), ctypes.byref(pointer))
        program = VendorProgram(pointer, path)
        for dpu in self:
            dpu._state.program = program
        for each in (self, *self.ranks(), *self.dpus()):
            for name in program.variables:  # they would hide variables of the same name
                each.__dict__.pop(name, None)
        return program

    def copy(
        self,
        dst: Any,
        src: Any,
        size: int | None = None,
        offset: int = 0,
        async_mode: bool | None = None,
    ) -> None:
        """Copy between memory of the host and a symbol of the DPUs.

        Args:
          dst: symbol, its name, a writable buffer, or a list of one buffer or None per DPU.
          src: the other of the two.
          size: bytes; None for those of the buffers, which must then be of one size.
          offset: bytes from the symbol's start.
          async_mode: whether the copy is queued until `sync`; None for the set's default.

        Raises:
          DpuError: if not exactly one is a symbol, it does not exist, or sizes do not fit.
          TypeError: if the other is no buffer, or cannot be written to.
        """
        sending, receiving = (isinstance(each, str | DpuSymbol) for each in (dst, src))
        if sending == receiving:
            raise lib.DpuError(
                "copy: one of dst and src must be a symbol or its name, the other memory of the "
                f"host; got {shown(dst)} and {shown(src)}"
            )
        handle, queued = self._open(), self._queued(async_mode)
        # Of the copies that are not queued, one of no bytes to the DPUs does not wait.
        with self._calling(waits=receiving and not queued):
            try:
                kept = transfer(
                    handle,
                    self._handles(),
                    lib.TO_DPU if sending else lib.FROM_DPU,
                    dst if sending else src,
                    src if sending else dst,
                    None if size is None else whole("size", size, 0, 2**32 - 1),
                    whole("offset", offset, 0, 2**32 - 1),
                    lib.QUEUED_TRANSFER if queued else 0,
                )
            except lib.DpuError as error:
                program = self._program() if error.status == lib.UNKNOWN_SYMBOL else None
                if program is None:
                    raise
                names = ", ".join(program.variables)
                raise lib.DpuError(f"{error}; it has {names}", error.status) from None
        if queued:
            self._state.allocation.keep(kept)

    def exec(self, log: Any = None, async_mode: bool | None = None) -> None:
        """Run the program on the DPUs.

        Args:
          log: stream, list of one stream or None per DPU, or dict from DPUs to streams; None for
            those of the constructor. Without meaning for a queued launch.
          async_mode: whether the launch is queued until `sync`; None for the set's default.

        Raises:
          EmulatorFault: a DPU stopped; a DpuError with the fault's place.
          DpuError: no program is loaded.
        """
        handle, queued = self._open(), self._queued(async_mode)
        streams = self._streams(log)
        policy = lib.ASYNCHRONOUS if queued else lib.SYNCHRONOUS
        self._call("dpu_launch", handle, policy, waits=not queued)
        if not queued:
            write_logs(self._handles(), streams)

    def log(self, stream: Any = None) -> None:
        """Write the output of the last launch, each DPU's after a line that names it.

        Args:
          stream: as `log` of `exec`, with standard output where there is none.

        Raises:
          DpuError: if no program is loaded.
        """
        self._open()
        write_logs(self._handles(), or_standard_output(self._streams(stream)))

    def sync(self) -> None:
        """Wait for what is queued.

        Raises:
          DpuError: the first error of it, unless an earlier call raised it. A callback's exception
            is raised as it is.
        """
        self._call("dpu_sync", self._open())

    def call(
        self,
        fn: Callable[["VendorDpuSet", int, Any], object],
        arg: Any,
        async_mode: bool | None = None,
        is_blocking: bool = True,
        single_call: bool = False,
    ) -> None:
        """Call a function for each rank of the set, after what is queued.

        Args:
          fn: function of a rank's set, the rank's index and `arg`.
          arg: its last argument.
          async_mode: whether the call is queued until `sync`; None for the set's default.
          is_blocking: whether what is queued later waits for it.
          single_call: call it once, with this set.

        Raises:
          DpuError: if a call that is not queued is not blocking. An exception of `fn` is raised by
            this call, or, if queued, by `sync`, `free` or an earlier call that meets it.
        """
        if not callable(fn):
            raise TypeError(f"fn must be a function, got {shown(fn)}")
        handle, queued = self._open(), self._queued(async_mode)
        callbacks, ranks = self._state.allocation.callbacks, self.ranks()

        def call_with_set(index: int) -> None:
            fn(self if single_call or len(ranks) == 1 else ranks[index], index, arg)

        flags = (lib.QUEUED_CALL if queued else 0) | (0 if is_blocking else lib.NONBLOCKING_CALL)
        flags |= lib.SINGLE_CALL * single_call
        number = callbacks.add(call_with_set, 1 if single_call else len(ranks))
        arguments = handle, callbacks.entry, ctypes.c_void_p(number), flags
        try:
            self._call("dpu_callback", *arguments, waits=not queued)
        except BaseException:
            callbacks.remove(number)
            raise

    def checkpoint(self, *flags: Any, **named: Any) -> None:
        """Refuse to save or restore contexts: they have registers and IRAM, which are not emulated.

        Raises:
          DpuError: always.
        """
        raise lib.DpuError("checkpoint and restore: registers and IRAM are not emulated")

    restore = checkpoint

    def _streams(self, log: Any) -> list[Any]:
        return chosen_streams(self.dpus(), [dpu._state.log for dpu in self], log)

    def _program(self) -> VendorProgram | None:
        # A load to a part of the set changes its DPUs' state, not that of the set. The library may
        # place a new program where an old one was, so an old state would pass for the new.
        return common_program(self._open(), self.dpus()[0]._state.program)
