"""Copies between buffers of the host and symbols of DPUs."""

import ctypes
import os
from collections.abc import Sequence

from pim_emu import host_library as lib
from pim_emu.arguments import shown
from pim_emu.vendor_python.program import DpuSymbol

_BUFFERS = "a bytearray, bytes, memoryview or array, or a list with one of them or None per DPU"


def transfer(
    whole: lib.SetHandle,
    dpus: Sequence[lib.SetHandle],
    direction: int,
    symbol: str | DpuSymbol,
    host: object,
    size: int | None,
    offset: int,
    flags: int,
) -> list[ctypes.Array]:
    """Copy between a symbol and one buffer, or a buffer for each DPU.

    Args:
      whole: the set.
      dpus: its DPUs.
      direction: `TO_DPU` or `FROM_DPU`.
      symbol: a symbol or its name.
      host: a buffer, or a list of one buffer or None per DPU.
      size: bytes, or None for those of the buffers.
      offset: bytes from the symbol's start.
      flags: `dpu_xfer_flags_t`.

    Returns:
      The memory that must last until the transfer has ended.
    """
    sending = direction == lib.TO_DPU
    several = isinstance(host, list | tuple)
    buffers = list(host) if isinstance(host, list | tuple) else [host]
    if len(buffers) != len(dpus) and (several or not sending):
        raise lib.DpuError(
            f"copy: {len(buffers)} buffers for {len(dpus)} DPUs: give a list of one each"
        )
    memory = [None if each is None else _memory(each, sending) for each in buffers]
    sizes = {len(each) for each in memory if each is not None}
    if not sizes:
        raise lib.DpuError("copy: no DPU has a buffer")
    if len(sizes) > 1:
        raise lib.DpuError(f"copy: buffers must have one size, got {sorted(sizes)} B")
    (room,) = sizes
    length = room if size is None else size
    if length > room:
        raise lib.DpuError(f"copy: size is {length} B, the buffer has {room} B")
    arguments = [_symbol(symbol), ctypes.c_uint32(offset)]
    suffix = "_symbol" if isinstance(symbol, DpuSymbol) else ""
    bytes_each = ctypes.c_size_t(length)
    if sending and not several:
        lib.call(f"dpu_broadcast_to{suffix}", whole, *arguments, memory[0], bytes_each, flags)
    else:
        _push(
            f"dpu_push_xfer{suffix}",
            whole,
            dpus,
            memory,
            (direction, *arguments, bytes_each, flags),
        )
    return [each for each in memory if each is not None]


def _push(
    function: str,
    whole: lib.SetHandle,
    dpus: Sequence[lib.SetHandle],
    memory: Sequence[ctypes.Array | None],
    arguments: Sequence[object],
) -> None:
    try:
        for dpu, each in zip(dpus, memory, strict=True):
            if each is not None:
                lib.call("dpu_prepare_xfer", dpu, each)
        lib.call(function, whole, *arguments)
    except BaseException:
        # What was prepared would stay prepared, and its memory goes.
        lib.call("dpu_prepare_xfer", whole, None)
        raise


def _symbol(symbol: str | DpuSymbol) -> object:
    return symbol.structure if isinstance(symbol, DpuSymbol) else os.fsencode(symbol)


def _memory(buffer: object, sending: bool) -> ctypes.Array:
    """Return a buffer as an array of ctypes: its own memory, or a copy of constant bytes."""
    try:
        view = memoryview(buffer)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"copy: a buffer must be {_BUFFERS}, got {shown(buffer)}") from None
    if not view.c_contiguous:
        raise TypeError("copy: a buffer must be contiguous")
    if view.readonly and not sending:
        raise TypeError(f"copy: cannot write to {shown(buffer)}, which is constant")
    kind = ctypes.c_char * view.nbytes
    flat = view.cast("B")
    return kind.from_buffer_copy(flat) if view.readonly else kind.from_buffer(flat)
