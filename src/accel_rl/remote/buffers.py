"""Reply buffers that are reused once nothing refers to their arrays."""

import dataclasses
import math
import sys
from collections.abc import Sequence

import numpy as np

from accel_rl.remote.schema import Column
from accel_rl.remote.wire import ALIGN, BODY, aligned

Part = tuple[np.dtype, tuple[int, ...]]  # dtype and shape of a section

_KEPT = 4  # buffers of one batch size
_FREE = 3  # references to a free array: list, loop variable, argument of getrefcount


@dataclasses.dataclass(frozen=True)
class RemoteSample:
    """Items drawn from a table.

    Arrays may share memory with each other. The memory is not reused as long as any of them, or a
    view of one, exists.
    """

    columns: dict[str, np.ndarray]  # each [B, ...], by name
    slots: np.ndarray  # [B] uint32
    generations: np.ndarray  # [B] uint32
    probabilities: np.ndarray  # [B] float64, probability of the item in one draw
    size: int  # items in the table when the sample was drawn
    total: float  # sum of weights p^alpha at that time; the size for uniform


def layout(parts: Sequence[Part]) -> tuple[list[int], int]:
    """Return the offsets of a frame's sections, and the length of the frame, in bytes."""
    offsets, end = [], BODY
    for dtype, shape in parts:
        offsets.append(aligned(end))
        end = offsets[-1] + dtype.itemsize * math.prod(shape)
    return offsets, end


class SampleBuffer:
    """Buffer for one reply to SAMPLE, aligned to 64 bytes, with arrays over its sections."""

    def __init__(self, columns: Sequence[Column], batch: int) -> None:
        fixed = ("<f8", "<u4", "<u4")
        parts: list[Part] = [(np.dtype(code), (batch,)) for code in fixed]
        parts += [(column.numpy_dtype, (batch, *column.shape)) for column in columns]
        offsets, end = layout(parts)
        memory = np.empty(end + ALIGN, np.uint8)  # room to align the first byte
        shift = -memory.ctypes.data % ALIGN
        self._memory = memory
        self.bytes = memory.data[shift : shift + end]
        self._arrays = [
            np.ndarray(shape, dtype, buffer=memory, offset=shift + offset)
            for (dtype, shape), offset in zip(parts, offsets, strict=True)
        ]
        self._names = [column.name for column in columns]
        self._at_rest = sys.getrefcount(memory)  # includes the variable `memory`

    def free(self) -> bool:
        """Return whether nothing outside refers to one of the arrays, or to a view of one."""
        if sys.getrefcount(self._memory) != self._at_rest - 1:
            return False  # views of the arrays have `memory` as their base
        return all(sys.getrefcount(array) <= _FREE for array in self._arrays)

    def sample(self, size: int, total: float) -> RemoteSample:
        """Return the arrays as a sample."""
        probabilities, slots, generations, *columns = self._arrays
        named = dict(zip(self._names, columns, strict=True))
        return RemoteSample(named, slots, generations, probabilities, size, total)


class SampleBuffers:
    """Pool of buffers for samples of one table, with a few for each batch size."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._kept: dict[int, list[SampleBuffer]] = {}

    def take(self, batch: int) -> SampleBuffer:
        """Return a free buffer."""
        kept = self._kept.setdefault(batch, [])
        for buffer in kept:
            if buffer.free():
                return buffer
        buffer = SampleBuffer(self._columns, batch)
        if len(kept) >= _KEPT:
            kept.pop(0)
        kept.append(buffer)
        return buffer
