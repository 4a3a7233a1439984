"""The host library by ctypes: its functions, the structures they take, and their errors."""

import ctypes
import functools

from pim_emu.sdk import sdk_path

TO_DPU, FROM_DPU = 0, 1  # dpu_xfer_t
SYNCHRONOUS = 1  # dpu_launch_policy_t
LOG_BUFFER_TOO_SMALL = 32  # DPU_ERR_LOG_BUFFER_TOO_SMALL
HEAP = "__sys_used_mram_end"  # DPU_MRAM_HEAP_POINTER_NAME


class DpuError(RuntimeError):
    """A call of the host interface failed: the call, and the library's words for its status."""


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
    """libdpu.so of the SDK folder, with the types of what has no status as its result."""
    dll = ctypes.CDLL(str(sdk_path() / "lib" / "libdpu.so"))
    dll.dpu_error_to_string.restype = ctypes.c_void_p
    dll.dpu_set_dpu_iterator_from.restype = DpuIterator
    dll.dpu_set_dpu_iterator_next.restype = None
    dll.pim_emu_take_complaint.restype = None
    dll.pim_emu_set.argtypes = [ctypes.c_char_p, ctypes.c_double]
    return dll


def call(name: str, *arguments: object, allowed: int = 0) -> None:
    """Call a function that returns a status; DPU_OK and `allowed` are no errors.

    Raises:
      DpuError: another status.
    """
    _take_complaint()  # of a call that succeeded nevertheless
    status = getattr(library(), name)(*arguments)
    if status not in (0, allowed):
        reason = _take_complaint()
        raise DpuError(": ".join(part for part in (name, describe(status), reason) if part))


def _take_complaint() -> str:
    text = ctypes.create_string_buffer(1024)
    library().pim_emu_take_complaint(text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace")


def describe(status: int) -> str:
    """The library's words for a status."""
    text = library().dpu_error_to_string(status)
    words = ctypes.string_at(text).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return words


def member_handles(handle: SetHandle) -> list[SetHandle]:
    """The DPUs of a set, in their order."""
    dll, handles = library(), []
    iterator = dll.dpu_set_dpu_iterator_from(ctypes.byref(handle))
    while iterator.has_next:
        handles.append(SetHandle.from_buffer_copy(iterator.next))
        dll.dpu_set_dpu_iterator_next(ctypes.byref(iterator))
    return handles
