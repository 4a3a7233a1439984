"""Streams that get what DPUs print."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pim_emu import host_library as lib
from pim_emu.arguments import shown


def each_stream(dpus: Sequence[Any], log: Any) -> list[Any]:
    """Return a stream or None for each DPU, of one for all or a list of one per DPU.

    Raises:
      DpuError: if there is not one per DPU, or one cannot be written to.
    """
    if not isinstance(log, list):
        log = [log] * len(dpus)
    if len(log) != len(dpus):
        raise lib.DpuError(f"log: {len(log)} streams for {len(dpus)} DPUs")
    for stream in log:
        if stream is not None and not callable(getattr(stream, "write", None)):
            raise lib.DpuError(f"log: {shown(stream)} has no method write")
    return list(log)


def chosen_streams(dpus: Sequence[Any], given: Sequence[Any], log: Any) -> list[Any]:
    """Return the stream of each DPU: as `log` says, or else the given ones.

    Args:
      dpus: DPUs of a set.
      given: a stream or None for each.
      log: stream for all, list of one or None per DPU, dict from DPUs to streams, or None.

    Raises:
      DpuError: as for `each_stream`, or if the dict has a DPU of another set.
    """
    if isinstance(log, Mapping):
        if others := [each for each in log if each not in dpus]:
            raise lib.DpuError(f"log: {shown(others[0])} is no DPU of the set")
        log = [log.get(dpu) for dpu in dpus]
    chosen = each_stream(dpus, log)
    return [own if own is not None else other for own, other in zip(chosen, given, strict=True)]


def write_logs(handles: Sequence[lib.SetHandle], streams: Sequence[Any]) -> None:
    """Write the output of each DPU to its stream, if it has one."""
    for handle, stream in zip(handles, streams, strict=True):
        if stream is not None:
            stream.write(lib.log(handle, named=True))


def or_standard_output(streams: Sequence[Any]) -> list[Any]:
    """Return streams with standard output for None."""
    return [sys.stdout if stream is None else stream for stream in streams]
