"""Memory for replies that is used again once nobody looks at it any more."""

import dataclasses
import sys
from collections.abc import Sequence

import numpy as np

from accel_rl.remote.schema import Column
from accel_rl.remote.wire import ALIGN, BODY, aligned

Part = tuple[np.dtype, tuple[int, ...]]  # dtype and shape of a section

_KEPT = 4  # buffers of one batch size
_FREE = 3  # references to an array: of its list, its variable and the call that counts


@dataclasses.dataclass(frozen=True)
class Sample:
    """Items drawn from a table.

    Arrays may share memory with each other, and nothing else writes to it as long as one of them
    is there.
    """

    columns: dict[str, np.ndarray]  # each [B, ...], by name
    slots: np.ndarray  # [B] uint32
    generations: np.ndarray  # [B] uint32
    probabilities: np.ndarray  # [B] float64, of each draw to be this item
    size: int  # items held when it was drawn
    total: float  # sum of weights p^alpha then; the size for uniform


class SampleBuffer:
    """Room for one reply to SAMPLE, aligned to 64 bytes, and its arrays."""

    def __init__(self, columns: Sequence[Column], batch: int) -> None:
        offsets, end = [], BODY
        fixed = ("<f8", "<u4", "<u4")
        parts: list[Part] = [(np.dtype(code), (batch,)) for code in fixed]
        parts += [(column.numpy_dtype, (batch, *column.shape)) for column in columns]
        for dtype, shape in parts:
            offsets.append(aligned(end))
            end = offsets[-1] + dtype.itemsize * int(np.prod(shape))
        memory = np.empty(end + ALIGN, np.uint8)
        shift = -memory.ctypes.data % ALIGN
        self._memory = memory
        self.bytes = memory.data[shift : shift + end]
        self._arrays = [
            np.ndarray(shape, dtype, buffer=memory, offset=shift + offset)
            for (dtype, shape), offset in zip(parts, offsets, strict=True)
        ]
        self._names = [column.name for column in columns]
        self._at_rest = sys.getrefcount(memory)

    def free(self) -> bool:
        """Whether nobody has one of its arrays, or a part of one."""
        if sys.getrefcount(self._memory) != self._at_rest - 1:
            return False
        return all(sys.getrefcount(array) <= _FREE for array in self._arrays)

    def sample(self, size: int, total: float) -> Sample:
        """The arrays, as a sample."""
        probabilities, slots, generations, *columns = self._arrays
        named = dict(zip(self._names, columns, strict=True))
        return Sample(named, slots, generations, probabilities, size, total)


class SampleBuffers:
    """Buffers for samples of one table, some kept for each batch size."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._kept: dict[int, list[SampleBuffer]] = {}

    def take(self, batch: int) -> SampleBuffer:
        """A buffer that nobody looks at."""
        kept = self._kept.setdefault(batch, [])
        for buffer in kept:
            if buffer.free():
                return buffer
        buffer = SampleBuffer(self._columns, batch)
        if len(kept) >= _KEPT:
            kept.pop(0)
        kept.append(buffer)
        return buffer
