"""Bindings of the host library by ctypes: functions, structures and errors."""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from pim_emu import low_memory
from pim_emu.sdk import sdk_path

TO_DPU, FROM_DPU = 0, 1  # dpu_xfer_t
ASYNCHRONOUS, SYNCHRONOUS = 0, 1  # dpu_launch_policy_t
QUEUED_TRANSFER = 2  # DPU_XFER_ASYNC
QUEUED_CALL, NONBLOCKING_CALL, SINGLE_CALL = 1, 2, 4  # dpu_callback_flags_t
ALLOCATE_ALL = 2**32 - 1  # DPU_ALLOCATE_ALL
INTERNAL = 1  # DPU_ERR_INTERNAL
TOO_FEW_DPUS = 4  # DPU_ERR_ALLOCATION
BEYOND_SYMBOL = 11  # DPU_ERR_INVALID_SYMBOL_ACCESS
DPU_FAULT = 23  # DPU_ERR_DPU_FAULT
UNKNOWN_SYMBOL = 29  # DPU_ERR_UNKNOWN_SYMBOL
LOG_BUFFER_TOO_SMALL = 32  # DPU_ERR_LOG_BUFFER_TOO_SMALL
CAUSE = 2**16 - 1  # bits without DPU_ERR_ASYNC_JOBS, the sign, and the kind of the job


class DpuError(RuntimeError):
    """Failed call of the host interface; the message has the call and its status in words.

    Attributes:
      status: the call's result, a `dpu_error_t`; 0 if no call was made.
    """

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


class EmulatorFault(DpuError):
    """Fault of a DPU; the message names the fault, the tasklet and the line.

    Attributes:
      fault: name of the fault, such as "misaligned DMA".
      dpu: index of the first faulty DPU.
      log: output of that DPU until the fault.
      status: status of the launch, `DPU_ERR_DPU_FAULT`.
    """

    def __init__(self, message: str, fault: str, dpu: int, log: str, status: int = 0):
        super().__init__(message, status)
        self.fault, self.dpu, self.log = fault, dpu, log

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.fault, self.dpu, self.log), self.__dict__


class _Ranks(ctypes.Structure):
    _fields_ = [("nr_ranks", ctypes.c_uint32), ("ranks", ctypes.c_void_p)]


class _Members(ctypes.Union):
    _fields_ = [("list", _Ranks), ("dpu", ctypes.c_void_p)]


class SetHandle(ctypes.Structure):
    """`struct dpu_set_t`."""

    _fields_ = [("kind", ctypes.c_int), ("members", _Members)]


class DpuIterator(ctypes.Structure):
    """`struct dpu_set_dpu_iterator_t`."""

    _fields_ = [
        ("set", SetHandle),
        *((name, ctypes.c_uint32) for name in ("count", "rank", "dpu")),
        ("has_next", ctypes.c_bool),
        ("next", SetHandle),
    ]


class RankIterator(ctypes.Structure):
    """`struct dpu_set_rank_iterator_t`."""

    _fields_ = [
        ("set", SetHandle),
        ("count", ctypes.c_uint32),
        ("has_next", ctypes.c_bool),
        ("next", SetHandle),
    ]


class SymbolStructure(ctypes.Structure):
    """`struct dpu_symbol_t`."""

    _fields_ = [("address", ctypes.c_uint32), ("size", ctypes.c_uint32)]


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, SetHandle, ctypes.c_uint32, ctypes.c_void_p)


class CountersStructure(ctypes.Structure):
    """`struct pim_emu_counters`."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("cycles", "instructions", "dma_reads")),
        *((name, ctypes.c_uint64) for name in ("dma_read_bytes", "dma_writes", "dma_write_bytes")),
        ("dma_cycles", ctypes.c_uint64),
        ("heap_bytes", ctypes.c_uint32),
    ]


class SetCountersStructure(ctypes.Structure):
    """`struct pim_emu_set_counters`."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("bytes_to_dpus", "bytes_from_dpus")),
        *((name, ctypes.c_uint64) for name in ("broadcast_bytes", "launches", "slowest_cycles")),
        ("transfer_seconds", ctypes.c_double),
        ("launch_seconds", ctypes.c_double),
    ]


@functools.cache
def library() -> ctypes.CDLL:
    """Load libdpu.so of the SDK folder, and declare the functions that return no status."""
    path = str(sdk_path() / "lib" / "libdpu.so")
    low_memory.give_back()
    dll = ctypes.CDLL(path)
    dll.dpu_error_to_string.restype = ctypes.c_void_p
    dll.dpu_set_dpu_iterator_from.restype = DpuIterator
    dll.dpu_set_dpu_iterator_next.restype = None
    dll.dpu_set_rank_iterator_from.restype = RankIterator
    dll.dpu_set_rank_iterator_next.restype = None
    dll.pim_emu_take_complaint.restype = None
    dll.pim_emu_set.argtypes = [ctypes.c_char_p, ctypes.c_double]
    return dll


def call(name: str, *arguments: object, allowed: int = 0) -> None:
    """Call a library function; raise DpuError unless its status is DPU_OK or `allowed`.

    Raises:
      DpuError: for any other status.
    """
    _take_complaint()  # of a call that succeeded nevertheless
    status = getattr(library(), name)(*arguments)
    if status not in (0, allowed):
        reason = _take_complaint().removeprefix(f"{name}: ")
        text = ": ".join(part for part in (name, describe(status), reason) if part)
        raise DpuError(text, status)


def _take_complaint() -> str:
    text = ctypes.create_string_buffer(1024)
    library().pim_emu_take_complaint(text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace")


def describe(status: int) -> str:
    """Return the library's description of a status."""
    text = library().dpu_error_to_string(status)
    words = ctypes.string_at(text).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return words


def member_handles(handle: SetHandle) -> list[SetHandle]:
    """Return the handles of a set's DPUs, in order."""
    return _handles(handle, "dpu")


def rank_handles(handle: SetHandle) -> list[SetHandle]:
    """Return the handles of a set's ranks, in order."""
    return _handles(handle, "rank")


def _handles(handle: SetHandle, kind: str) -> list[SetHandle]:
    dll, handles = library(), []
    iterator = getattr(dll, f"dpu_set_{kind}_iterator_from")(ctypes.byref(handle))
    while iterator.has_next:
        handles.append(SetHandle.from_buffer_copy(iterator.next))
        getattr(dll, f"dpu_set_{kind}_iterator_next")(ctypes.byref(iterator))
    return handles


def machine_name(handle: SetHandle) -> str:
    """Return the name of the machine that a set belongs to."""
    name = ctypes.c_char_p()
    call("pim_emu_get_machine", handle, ctypes.byref(name))
    return (name.value or b"").decode()


def raise_fault(dpus: Sequence[SetHandle], status: int) -> None:
    """Raise EmulatorFault for the first faulty DPU, if there is one."""
    for index, dpu in enumerate(dpus):
        name, message = ctypes.c_char_p(), ctypes.c_char_p()
        call("pim_emu_get_fault", dpu, ctypes.byref(name), ctypes.byref(message))
        if name.value:
            text = (message.value or b"").decode(errors="replace")
            raise EmulatorFault(text, name.value.decode(), index, log(dpu), status) from None


def log(dpu: SetHandle, *, named: bool = False) -> str:
    """Return the output of a DPU in its last launch, after a line that names it if `named`."""
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    try:
        if named:
            call("dpu_log_read", dpu, stream, allowed=LOG_BUFFER_TOO_SMALL)
        else:
            address = ctypes.c_void_p(dpu.members.dpu)
            call("dpulog_read_for_dpu", address, stream, allowed=LOG_BUFFER_TOO_SMALL)
    finally:
        libc.fclose(stream)
        printed = ctypes.string_at(text, size.value).decode(errors="replace")
        libc.free(text)
    return printed
