"""Table sharded over several servers, with the interface of one: docs/apex.md, Shards."""

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accel_rl.arguments import whole
from accel_rl.remote import wire
from accel_rl.remote.buffers import RemoteSample
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import RequestRefused, TryAgain, error_of
from accel_rl.remote.schema import Column, Limiter, TableSpec
from accel_rl.remote.shard import Shard, Shards
from accel_rl.remote.shares import drawn, joined
from accel_rl.remote.table import MOST_ITEMS, Mass, RemoteTable, arrays_of, check_arrays
from accel_rl.types import ArrayLike

PAUSE = 0.02  # seconds between polls for items
_BAD_COUNT, _BAD_PRIORITY, _BAD_SLOT = 2, 4, 5  # statuses


class ShardedTable(Closing):
    """Table whose items are spread over several servers, with the methods of a `RemoteTable`.

    Pushed items go to the shards in turn. Each draw selects a shard in proportion to the sums of
    weights in the shards' last replies, then an item within the shard. The probability of an item
    is the product of both, so importance-sampling weights are exact however old the sums are.
    Requests to shards run in parallel.

    A shard that does not answer is lost: its items leave the replay buffer, with a RuntimeWarning,
    and pushes go to the other shards. It is reconnected automatically, with the items that its
    server then holds. A limiter is a table of the first server; without that server pushes and
    samples fail.

    Thread-safe: a lock serialises calls. Slots number the slots of all shards consecutively.

    Attributes:
      spec: of the whole table.
    """

    def __init__(
        self,
        addresses: Sequence[Any],
        spec: TableSpec,
        secret: bytes | None = None,
        *,
        fresh_totals: bool = False,
        timeout: float = 30.0,
    ) -> None:
        """Open the table on every server; create it where it is missing.

        Args:
          addresses: of the servers; in the same order for all clients.
          spec: of the whole table; each shard has an equal part of `capacity`, rounded up.
          secret: shared secret of all servers and clients, if the servers have one.
          fresh_totals: ask all shards for their sums of weights before each sample. This costs a
            round trip; items are then drawn in proportion to their present weights.
          timeout: seconds to wait for a reply.

        Raises:
          ValueError: if an address is given twice, or the sampler is amper_fr: its groups depend on
            the highest weight in the whole table, which no shard knows.
          RemoteError: if no server can be reached, the first server cannot and the table has a
            limiter, or a server has another table of that name. Other servers that cannot be
            reached are lost from the beginning.
        """
        if not addresses or len({str(address) for address in addresses}) < len(addresses):
            raise ValueError(f"addresses must be one or more, each once, got {list(addresses)}")
        if spec.sampler == "amper_fr":
            raise ValueError(
                "sampler must be uniform or prioritised for a table of several shards: the groups "
                "of amper_fr are of the highest weight in the whole table, which no shard knows"
            )
        self.spec = spec
        self._each = -(-spec.capacity // len(addresses))  # items of a shard
        whole("capacity over all shards", self._each * len(addresses), 1, 2**32 - 1)
        self._names = [column.name for column in spec.columns]
        self._fresh = fresh_totals
        self._lock = threading.RLock()
        self._turn = 0
        self._doubtful = 0  # items of pushes whose shard was lost meanwhile
        self._allowed = 0  # items that the limiter has granted and that are not drawn yet
        self._pace_client: ReplayClient | None = None
        self._pace: RemoteTable | None = None
        try:
            if spec.limiter.samples_per_insert is not None:
                self._pace_client = ReplayClient(addresses[0], secret, timeout=timeout)
                pace = TableSpec(
                    f"{spec.name}/limiter",
                    spec.capacity,
                    (Column("item", "u1"),),  # one byte for each pushed item
                    sampler="uniform",
                    limiter=spec.limiter,
                )
                self._pace = self._pace_client.table(pace)
            part = dataclasses.replace(spec, capacity=self._each, limiter=Limiter())
            self._shards = Shards(addresses, secret, part, timeout)
        except BaseException:
            if self._pace_client is not None:
                self._pace_client.close()
            raise

    @property
    def lost(self) -> int:
        """Number of shards that are lost now."""
        return self._shards.lost

    def push(
        self,
        columns: Mapping[str, Any] | Sequence[Any],
        priorities: ArrayLike | None = None,
        *,
        wait: float = 0.0,
    ) -> int:
        """Add n items, as `RemoteTable.push`; without priorities each gets its shard's highest.

        No item is pushed twice. If a shard is lost by a push and may have taken its items, they are
        not pushed again, and `stats` counts them as `doubtful`. If it certainly did not take them,
        as after a restart without the table, the other shards get them.

        Raises:
          RequestRefused: if there are more items than the capacity, or priorities are invalid.
          ConnectionLost: if all shards are lost, or the first server, which has the limiter.
        """
        # Check everything before the limiter counts the items and any shard gets its part.
        arrays = arrays_of(self._names, columns)
        count = len(arrays[0])
        parts = [(each.numpy_dtype, (count, *each.shape)) for each in self.spec.columns]
        check_arrays(self._names, parts, arrays)
        if not 0 < count <= self.spec.capacity:
            raise error_of(
                _BAD_COUNT, "push", f"{count} items, the capacity is {self.spec.capacity}"
            )
        given = None if priorities is None else _checked(priorities, count, "push")
        with self._lock:
            if self._pace is not None:
                self._pace.push([np.zeros(count, np.uint8)], wait=wait)
            left = [np.arange(count)]
            while left:
                left += self._deal(left.pop(), arrays, given)
            return self._shards.size

    def _deal(
        self, items: np.ndarray, arrays: list[np.ndarray], given: np.ndarray | None
    ) -> list[np.ndarray]:
        """Push items, given by index, to the shards in turn; return the items left to push."""
        live = self._shards.live()
        most = self._each * len(live)  # a shard refuses a part above its capacity
        items, rest = items[:most], items[most:]
        parts = {
            shard: items[(place - self._turn) % len(live) :: len(live)]
            for place, shard in enumerate(live)
        }
        parts = {shard: part for shard, part in parts.items() if len(part)}
        self._turn += len(items)

        def put(part: np.ndarray) -> Callable[[RemoteTable], int]:
            mine = None if given is None else given[part]
            return lambda table: table.push([array[part] for array in arrays], mine)

        held = self._shards.ask({shard: put(part) for shard, part in parts.items()})
        for shard, size in held.items():
            shard.size = size
        missed = {shard: part for shard, part in parts.items() if shard not in held}
        self._doubtful += sum(len(part) for shard, part in missed.items() if shard.doubtful)
        again = [part for shard, part in missed.items() if not shard.doubtful]
        return [rest, *again] if len(rest) else again  # `push` continues with the last

    def sample(self, seed: int, batch: int, *, wait: float = 0.0) -> RemoteSample:
        """Draw `batch` items, as `RemoteTable.sample`, ordered by shard.

        Raises:
          TryAgain: if the limiter, or a lack of items, did not allow it in time.
          ConnectionLost: if all shards are lost, or the first server, which has the limiter.
        """
        wire.check_u64("seed", seed)
        whole("batch", batch, 1, MOST_ITEMS)
        until = time.monotonic() + wait
        with self._lock:
            if self._pace is not None and self._allowed != batch:
                self._pace.sample(seed, batch, wait=wait)
                self._allowed = batch  # kept if this call fails: the limiter has counted it
            while True:
                live = self._shards.live()
                drawn = self._draw(live, seed, batch)
                if drawn is not None:
                    self._allowed = 0
                    return drawn
                if any(shard.lost for shard in live):
                    continue  # draw the whole batch again, from the others
                if time.monotonic() >= until:
                    raise TryAgain("sample: there is nothing to draw from yet", 1)
                time.sleep(PAUSE)

    def _draw(self, live: list[Shard], seed: int, batch: int) -> RemoteSample | None:
        """Return a sample, or None if a shard was lost or there is nothing to draw from."""
        self._look([shard for shard in live if self._fresh or shard.total is None])
        totals = np.array([shard.total or 0.0 for shard in live])
        least = 1 if self._pace is not None else self.spec.limiter.min_size
        if any(shard.lost for shard in live) or not totals.any() or self._shards.size < least:
            self._forget(live)
            return None
        shares = drawn(totals, seed, batch)

        def ask(place: int) -> Callable[[RemoteTable], RemoteSample | Mass]:
            count, own = int(shares.counts[place]), shares.seeds[place]
            if not count:  # keeps its size and total up to date
                return RemoteTable.mass
            return lambda table: table.sample(own, count)

        try:
            found = self._shards.ask({shard: ask(place) for place, shard in enumerate(live)})
        except TryAgain:  # all weights of a shard became 0; ask for the totals again
            self._forget(live)
            return self._draw(live, seed, batch)
        for shard, part in found.items():
            shard.size, shard.total = part.size, part.total
        if any(shard.lost for shard in live):
            return None
        parts = [
            (part, shard.number * self._each, shares.odds[place])
            for place, (shard, part) in enumerate(found.items())
            if isinstance(part, RemoteSample)
        ]
        return joined(parts, self._shards.size, sum(shard.total or 0.0 for shard in live))

    def _forget(self, live: list[Shard]) -> None:
        """Mark totals as unknown, so that the next draw asks for them."""
        for shard in live:
            shard.total = None

    def update(self, sample: RemoteSample, priorities: ArrayLike) -> tuple[int, int]:
        """Update the priorities [B] of a sample, as `RemoteTable.update`."""
        return self.set_priorities(sample.slots, sample.generations, priorities)

    def set_priorities(
        self, slots: ArrayLike, generations: ArrayLike, priorities: ArrayLike
    ) -> tuple[int, int]:
        """Set priorities, as `RemoteTable.set_priorities`; drop those of lost shards."""
        where, known = np.asarray(slots), np.asarray(generations)
        given = _checked(priorities, len(where), "update")
        if where.size and int(where.max()) >= self._each * self._shards.count:
            raise RequestRefused(
                f"slots must be below {self._each * self._shards.count}", _BAD_SLOT
            )
        place, within = np.divmod(where, np.uint32(self._each))

        def put(own: np.ndarray) -> Callable[[RemoteTable], tuple[int, int]]:
            return lambda table: table.set_priorities(within[own], known[own], given[own])

        with self._lock:
            mine = {shard: place == shard.number for shard in self._shards.live()}
            found = self._shards.ask({each: put(own) for each, own in mine.items() if own.any()})
        applied = sum(each for each, _ in found.values())
        return applied, len(where) - applied

    def stats(self) -> dict[str, int]:
        """Return the sums of `RemoteTable.stats` over the connected shards.

        Also `shards`, their number; `lost`, the number lost now; `losses`, the number of times that
        a shard was lost; and `doubtful`, items pushed by this table that a lost shard may or may
        not hold.
        """
        with self._lock:
            found = self._shards.ask(dict.fromkeys(self._shards.live(), RemoteTable.stats))
            sums = {name: sum(each[name] for each in found.values()) for name in wire.TABLE_COUNTS}
            shards = self._shards
            sums |= {"shards": shards.count, "lost": shards.lost, "losses": shards.losses}
            return {**sums, "doubtful": self._doubtful}

    def close(self) -> None:
        """End all sessions. Idempotent."""
        self._shards.end()  # before the lock: a call that waits for shards holds it
        with self._lock:
            self._shards.close()
            if self._pace_client is not None:
                self._pace_client.close()

    def _look(self, shards: list[Shard]) -> None:
        """Ask shards for their sizes and totals."""
        for shard, mass in self._shards.ask(dict.fromkeys(shards, RemoteTable.mass)).items():
            shard.size, shard.total = mass


def _checked(priorities: ArrayLike, count: int, what: str) -> np.ndarray:
    """Return valid priorities [count] as float32, or raise."""
    given = np.asarray(priorities, np.float32)
    if given.shape != (count,):
        raise ValueError(f"priorities must have shape {[count]}, got {list(given.shape)}")
    if not (np.isfinite(given) & (given >= 0)).all():
        raise error_of(_BAD_PRIORITY, what)
    return given
