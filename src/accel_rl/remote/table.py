"""Client of one table of a replay server."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel_rl.arguments import require_array, whole, within
from accel_rl.remote import wire
from accel_rl.remote.buffers import Part, RemoteSample, SampleBuffers, layout
from accel_rl.remote.calls import Calls, Numbered
from accel_rl.remote.errors import (
    NO_SUCH_TABLE,
    LimitReached,
    ProtocolError,
    TryAgain,
    error_of,
)
from accel_rl.remote.schema import TableSpec
from accel_rl.remote.wire import ALIGN, BODY, Op
from accel_rl.types import ArrayLike

_COPIED = 1 << 16  # bytes of a frame up to which one copy is cheaper than sending parts
_MOST_PLANS = 32
MOST_ITEMS = 1 << 20  # of any call; the server's limit, `Calls.most_items`, is 65,536 by default
_ZEROS = bytes(ALIGN)
_BAD_COUNT, _LIMIT = 2, 9  # statuses
_PAUSE = 0.01  # seconds before a push that found no room is resent


class _Plan:
    """Reusable frame of a request with sections of known sizes, which holds small ones itself."""

    def __init__(self, names: Sequence[str], parts: Sequence[Part]) -> None:
        self.names, self.parts = names, parts
        offsets, end = layout(parts)
        self.length = end
        self.copied = end <= _COPIED
        self.head = bytearray(end if self.copied else BODY)
        ends = [BODY] + [
            offset + dtype.itemsize * math.prod(shape)
            for (dtype, shape), offset in zip(parts, offsets, strict=True)
        ]
        self._gaps = [_ZEROS[: at - before] for at, before in zip(offsets, ends, strict=False)]
        if self.copied:
            self._views = [
                np.ndarray(shape, dtype, buffer=self.head, offset=offset)
                for (dtype, shape), offset in zip(parts, offsets, strict=True)
            ]

    def fill(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Copy the arrays into the frame, or return the parts to send after the head."""
        if self.copied:
            for view, array in zip(self._views, arrays, strict=True):
                view[...] = array
            return []
        rest: list[Any] = []
        for gap, array in zip(self._gaps, arrays, strict=True):
            if gap:
                rest.append(gap)
            if array.size:
                rest.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return rest


def arrays_of(names: Sequence[str], columns: Mapping[str, Any] | Sequence[Any]) -> list[np.ndarray]:
    """Return the columns of a push, given by name or in order, as arrays [n, ...] in order."""
    given = columns
    if isinstance(columns, Mapping):
        columns = [columns[name] for name in names if name in columns]
    if not len(columns) == len(given) == len(names):
        told = list(given) if isinstance(given, Mapping) else f"{len(given)} arrays"
        raise ValueError(f"columns must be {names}, got {told}")
    return [np.asarray(array) for array in columns]


def check_arrays(names: Sequence[str], parts: Sequence[Part], arrays: Sequence[np.ndarray]) -> None:
    """Raise ValueError for a wrong shape of an array, TypeError for a wrong dtype."""
    for name, (dtype, shape), array in zip(names, parts, arrays, strict=True):
        if array.shape != shape or array.dtype != dtype:  # without a call on the hot path
            require_array(name, array, dtype, shape)


class Mass(NamedTuple):
    """Size of a table and its sum of weights."""

    size: int  # items
    total: float  # sum of weights p^alpha; the size for uniform


class RemoteTable(Numbered):
    """Table of a replay server, accessed through a client's session."""

    def __init__(self, client: Calls, spec: TableSpec, number: int) -> None:
        super().__init__(spec, number)
        self._client = client
        self._plans: dict[tuple[Op, int, bool], _Plan] = {}
        self._buffers = SampleBuffers(spec.columns)
        self._names = [column.name for column in spec.columns]
        self._sample = bytearray(BODY)

    def push(
        self,
        columns: Mapping[str, Any] | Sequence[Any],
        priorities: ArrayLike | None = None,
        *,
        wait: float = 0.0,
    ) -> int:
        """Add n items, which replace the oldest ones of a full table.

        Args:
          columns: arrays [n, ...] with the dtypes and shapes of the columns, by name or in order.
          priorities: [n] float32, finite and at least 0; None: the highest priority so far.
          wait: seconds to wait for the limiter.

        Returns:
          The number of items in the table after the push.

        Raises:
          ValueError, TypeError: if shapes or dtypes differ from the columns'.
          RequestRefused: if priorities are invalid, or n is above the capacity.
          TryAgain: if the limiter did not allow it in time, or the server had no room for the
            waiting request.
          LimitReached: if the server had no room, and `wait` is 0.
        """
        arrays = arrays_of(self._names, columns)
        if priorities is not None:
            arrays.insert(0, np.asarray(priorities, np.float32))
        until = time.monotonic() + wait
        while True:
            try:
                left = max(0.0, until - time.monotonic())
                return self._push(arrays, priorities is not None, left if wait else wait)
            except LimitReached as error:  # requests of others that wait take all the room
                if error.status != _LIMIT or not wait:
                    raise
                if time.monotonic() > until:
                    raise TryAgain(str(error), error.status) from error
            time.sleep(_PAUSE)

    def _push(self, arrays: list[np.ndarray], weighted: bool, wait: float) -> int:
        count, most = arrays[-1].shape[0], self._client.most_items
        if count > most:  # the server closes a connection on too long a frame
            raise error_of(_BAD_COUNT, "push", f"a call takes 1 to {most}, got {count}")
        with self._client.lock:
            plan = self._plan(Op.PUSH, count, weighted)
            check_arrays(plan.names, plan.parts, arrays)
            wire.PUSH.pack_into(
                plan.head, 0, *self._header(Op.PUSH, plan.length),
                count, _milliseconds(wait), weighted,
            )  # fmt: skip
            rest = plan.fill(arrays)
            _, reply = self._client.call(plan.head, "push", rest, wait=wait)
            _, held = wire.PUSH_REPLY.unpack_from(reply, wire.FIXED)
            return held

    def sample(self, seed: int, batch: int, *, wait: float = 0.0) -> RemoteSample:
        """Draw `batch` items with replacement, with the generator that the protocol specifies.

        Args:
          seed: from 0 to 2^64 - 1; the same seed and table contents give the same sample.
          batch: number of items.
          wait: seconds to wait for the limiter, or for items.

        Raises:
          ValueError: if the seed is not an unsigned 64-bit integer, or the batch is below 1 or
            above the server's limit.
          TryAgain: if the limiter, or a lack of items, did not allow it in time.
          RequestRefused, LimitReached: if the batch is too large for the table, or for a frame.
        """
        wire.check_u64("seed", seed)
        most = self._client.most_items
        whole("batch", batch, 1, most)
        with self._client.lock:
            buffer = self._buffers.take(batch)
            wire.SAMPLE.pack_into(
                self._sample, 0, *self._header(Op.SAMPLE, BODY), seed, batch, _milliseconds(wait)
            )
            _, reply = self._client.call(self._sample, "sample", (), buffer.bytes, wait)
            if len(reply) != len(buffer.bytes):
                raise ProtocolError(f"a sample must have {len(buffer.bytes)} bytes")
            _, size, total = wire.SAMPLE_REPLY.unpack_from(reply, wire.FIXED)
            return buffer.sample(size, total)

    def update(self, sample: RemoteSample, priorities: ArrayLike) -> tuple[int, int]:
        """Update the priorities [B] of a sample; the last priority of a repeated item counts.

        Returns:
          The numbers of priorities set, and dropped because their item was overwritten.

        Raises:
          RequestRefused: if a priority is NaN, infinite or negative; then none is set.
        """
        return self.set_priorities(sample.slots, sample.generations, priorities)

    def set_priorities(
        self, slots: ArrayLike, generations: ArrayLike, priorities: ArrayLike
    ) -> tuple[int, int]:
        """Update priorities by slots [n] uint32 and generations [n] uint32; see `update`."""
        arrays = [np.asarray(slots), np.asarray(generations), np.asarray(priorities, np.float32)]
        with self._client.lock:
            count = len(arrays[0])
            plan = self._plan(Op.UPDATE, count, True)
            check_arrays(plan.names, plan.parts, arrays)
            header = self._header(Op.UPDATE, plan.length)
            wire.UPDATE.pack_into(plan.head, 0, *header, count)
            rest = plan.fill(arrays)
            _, reply = self._client.call(plan.head, "update", rest)
            applied, stale = wire.UPDATE_REPLY.unpack_from(reply, wire.FIXED)
            return applied, stale

    def stats(self) -> dict[str, int]:
        """Return the table's counters, by the names of `wire.TABLE_COUNTS`."""
        return self._counted()[0]

    def mass(self) -> Mass:
        """Return the size and the sum of weights."""
        counts, total = self._counted()
        return Mass(counts["size"], total)

    def _counted(self) -> tuple[dict[str, int], float]:
        with self._client.lock:
            frame = wire.request_frame(Op.STATS, table=self.number)
            _, reply = self._client.call(frame, "stats")
            _, total = wire.STATS_REPLY.unpack_from(reply, wire.FIXED)
            return wire.counts_of(wire.TABLE_COUNTS, reply), total

    def _header(self, op: Op, length: int) -> tuple[int, ...]:
        if self.number == wire.NO_TABLE:
            raise error_of(
                NO_SUCH_TABLE,
                f"table {self.spec.name!r}",
                "the server began anew without it: make it again by client.table(spec)",
            )
        return wire.header_fields(op, self.number, length)

    def _plan(self, op: Op, count: int, weighted: bool) -> _Plan:
        plan = self._plans.get((op, count, weighted))
        if plan is None:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            names = ["priorities"] if weighted else []
            parts: list[Part] = [(np.dtype("<f4"), (count,))] if weighted else []
            if op is Op.UPDATE:
                names = ["slots", "generations", *names]
                parts = [(np.dtype("<u4"), (count,))] * 2 + parts
            else:
                names += self._names
                parts += [(each.numpy_dtype, (count, *each.shape)) for each in self.spec.columns]
            plan = self._plans[op, count, weighted] = _Plan(names, parts)
        return plan


def _milliseconds(seconds: float) -> int:
    within("wait", seconds, "[0, inf]")
    return min(int(seconds * 1000 + 0.999), 3600 * 1000)
