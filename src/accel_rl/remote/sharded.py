"""A table that several servers hold parts of, behind the calls of one: docs/apex.md, Shards."""

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from accel_rl.arguments import instance
from accel_rl.remote import wire
from accel_rl.remote.buffers import Sample
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import RequestRefused, TryAgain, error_of
from accel_rl.remote.pace import pace_of
from accel_rl.remote.schema import Limiter, TableSpec
from accel_rl.remote.shard import Shard, Shards
from accel_rl.remote.shares import drawn, joined
from accel_rl.remote.table import MOST_ITEMS, Mass, RemoteTable, arrays_of, check_arrays

PAUSE = 0.02  # seconds between two looks for items
_BAD_COUNT, _BAD_PRIORITY, _BAD_SLOT = 2, 4, 5  # statuses


class ShardedTable(Closing):
    """One table whose items lie on several servers, with the calls of a `RemoteTable`.

    The items of pushes go to the shards in turn. The shard of each draw is drawn by the sums of
    weights that shards had when they answered last, and then the item within it, so an item's
    probability is the product of both: importance weights are exact, however old the sums are.
    Requests to shards go side by side.

    A shard that does not answer is lost: with a RuntimeWarning, its items are out of the memory,
    and pushes go to the others. It comes back by itself, with what its server then holds. The
    limiter, where the table has one, is a table of the first server, without which nothing goes on.

    Calls are made one at a time. Slots are those of shards one behind the other.

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
        """Opens the table on every server; made there if need be.

        Args:
          addresses: of the servers; in the same order for all clients.
          spec: the whole table; `capacity` is shared out, rounded up.
          secret: what all servers and clients know, if the servers have one.
          fresh_totals: ask all shards for their sums before each sample: a round trip more, and
            items are then drawn in proportion to their weights as they are now.
          timeout: seconds that a reply may take.

        Raises:
          TypeError: if an argument is of another type.
          ValueError: if an address is given twice, or the sampler is amper_fr, whose groups are of
            the highest weight in the whole table, which no shard knows.
          RemoteError: if no server can be reached, or the first with the limiter, or one has
            another table of that name. Some that cannot be reached are lost from the beginning.
        """
        if isinstance(addresses, str) or not isinstance(addresses, Sequence):
            raise TypeError(f"addresses must be a sequence of them, got {addresses!r}")
        instance("spec", spec, TableSpec)
        if not addresses or len({str(address) for address in addresses}) < len(addresses):
            raise ValueError(f"addresses must be one or more, each once, got {list(addresses)}")
        if spec.sampler == "amper_fr":
            raise ValueError(
                "sampler must be uniform or prioritised for a table of several shards: the groups "
                "of amper_fr are of the highest weight in the whole table, which no shard knows"
            )
        self.spec = spec
        self._each = -(-spec.capacity // len(addresses))  # items of a shard
        if self._each * len(addresses) >= 1 << 32:
            raise ValueError(f"capacity must be below 2^32 over all shards, got {spec.capacity}")
        self._names = [column.name for column in spec.columns]
        self._fresh = fresh_totals
        self._lock = threading.RLock()
        self._turn = 0
        self._doubtful = 0  # items of pushes by which a shard was lost
        self._allowed = 0  # items that the limiter has let us draw, and that were not drawn yet
        self._pace_client: ReplayClient | None = None
        self._pace: RemoteTable | None = None
        try:
            if spec.limiter.samples_per_insert is not None:
                self._pace_client = ReplayClient(addresses[0], secret, timeout=timeout)
                self._pace = self._pace_client.table(pace_of(spec))
            part = dataclasses.replace(spec, capacity=self._each, limiter=Limiter())
            self._shards = Shards(addresses, secret, part, timeout)
        except BaseException:
            if self._pace_client is not None:
                self._pace_client.close()
            raise

    @property
    def lost(self) -> int:
        """How many shards are lost now."""
        return self._shards.lost

    def push(
        self,
        columns: Mapping[str, Any] | Sequence[Any],
        priorities: Any = None,
        *,
        wait: float = 0.0,
    ) -> int:
        """Adds n items, as `RemoteTable.push`; without priorities they get the highest of a shard.

        No item is pushed twice: what a shard was given that was lost by it is lost, too, as nobody
        can tell whether it was taken, and is counted in `stats` as `doubtful`. What a server that
        began anew, without the table, did not take, others take.

        Raises:
          RequestRefused: if there are more items than the capacity, or what is no priority.
          ConnectionLost: if all shards are lost, or the first server, which has the limiter.
        """
        # All of it before the limiter is asked, and before any shard has its part.
        arrays = arrays_of(self._names, columns)
        if not len(arrays[0]):
            raise ValueError("columns must have at least 1 item")
        count = len(arrays[0])
        parts = [(each.numpy_dtype, (count, *each.shape)) for each in self.spec.columns]
        check_arrays(self._names, parts, arrays)
        if count > self.spec.capacity:
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
        """Pushes items, by their numbers, to the shards in turn; those that are left to push."""
        live = self._shards.live()
        most = self._each * len(live)  # or one of few that are left would refuse its part
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
        return [rest, *again] if len(rest) else again  # the last is the next

    def sample(self, seed: int, batch: int, *, wait: float = 0.0) -> Sample:
        """Draws `batch` items, as `RemoteTable.sample`, ordered by shard.

        Raises:
          TryAgain: if nothing could be drawn in time.
          ConnectionLost: if all shards are lost, or the first server, which has the limiter.
        """
        wire.check_u64("seed", seed)
        if not 1 <= batch <= MOST_ITEMS:
            raise ValueError(f"batch must be from 1 to {MOST_ITEMS}, got {batch}")
        until = time.monotonic() + wait
        with self._lock:
            if self._pace is not None and self._allowed != batch:
                self._pace.sample(seed, batch, wait=wait)
                self._allowed = batch
            while True:
                live = self._shards.live()
                drawn = self._draw(live, seed, batch)
                if drawn is not None:
                    self._allowed = 0
                    return drawn
                if any(shard.lost for shard in live):
                    continue  # all of it again, from the others
                if time.monotonic() >= until:
                    raise TryAgain("sample: there is nothing to draw from yet", 1)
                time.sleep(PAUSE)

    def _draw(self, live: list[Shard], seed: int, batch: int) -> Sample | None:
        """None if a shard was lost, or there is nothing to draw from."""
        self._look([shard for shard in live if self._fresh or shard.total is None])
        totals = np.array([shard.total or 0.0 for shard in live])
        least = 1 if self._pace is not None else self.spec.limiter.min_size
        if any(shard.lost for shard in live) or not totals.any() or self._shards.size < least:
            self._forget(live)
            return None
        shares = drawn(totals, seed, batch)

        def ask(place: int) -> Callable[[RemoteTable], Sample | Mass]:
            count, own = int(shares.counts[place]), shares.seeds[place]
            if not count:  # or what it holds would be forgotten
                return RemoteTable.mass
            return lambda table: table.sample(own, count)

        try:
            found = self._shards.ask({shard: ask(place) for place, shard in enumerate(live)})
        except TryAgain:  # all the weights of a shard are 0 by now: it will say so
            self._forget(live)
            return self._draw(live, seed, batch)
        for shard, part in found.items():
            shard.size, shard.total = part.size, part.total
        if any(shard.lost for shard in live):
            return None
        parts = [
            (part, shard.number * self._each, shares.odds[place])
            for place, (shard, part) in enumerate(found.items())
            if isinstance(part, Sample)
        ]
        return joined(parts, self._shards.size, sum(shard.total or 0.0 for shard in live))

    def _forget(self, live: list[Shard]) -> None:
        """What shards hold: they are asked again."""
        for shard in live:
            shard.total = None

    def update(self, sample: Sample, priorities: Any) -> tuple[int, int]:
        """Gives the items of a sample new priorities [B], as `RemoteTable.update`."""
        return self.set_priorities(sample.slots, sample.generations, priorities)

    def set_priorities(self, slots: Any, generations: Any, priorities: Any) -> tuple[int, int]:
        """As `RemoteTable.set_priorities`; items of lost shards are dropped, and counted so."""
        where, known = np.asarray(slots), np.asarray(generations)
        given = _checked(priorities, len(where), "update")
        if known.shape != where.shape:
            raise ValueError(f"generations must have shape {list(where.shape)}")
        if where.size and int(where.max()) >= self._each * self._shards.count:
            raise RequestRefused(
                f"slots must be below {self._each * self._shards.count}", _BAD_SLOT
            )
        place, within = np.divmod(where, np.uint32(self._each))

        def put(mine: np.ndarray) -> Callable[[RemoteTable], tuple[int, int]]:
            return lambda table: table.set_priorities(within[mine], known[mine], given[mine])

        with self._lock:
            found = self._shards.ask(
                {
                    shard: put(place == shard.number)
                    for shard in self._shards.live()
                    if (place == shard.number).any()
                }
            )
        applied = sum(each for each, _ in found.values())
        return applied, len(where) - applied

    def stats(self) -> dict[str, int]:
        """Sums over the shards that are there of what `RemoteTable.stats` says.

        And `shards`, how many there are, `lost`, how many of them are lost now, `losses`, and
        `doubtful`, items of this table's pushes by which a shard was lost.
        """
        with self._lock:
            found = self._shards.ask(dict.fromkeys(self._shards.live(), RemoteTable.stats))
            sums = {name: sum(each[name] for each in found.values()) for name in wire.TABLE_COUNTS}
            shards = self._shards
            sums |= {"shards": shards.count, "lost": shards.lost, "losses": shards.losses}
            return {**sums, "doubtful": self._doubtful}

    def close(self) -> None:
        """Ends its sessions; a second time does nothing."""
        self._shards.end()  # also for a call that looks for lost ones
        with self._lock:
            self._shards.close()
            if self._pace_client is not None:
                self._pace_client.close()

    def _look(self, shards: list[Shard]) -> None:
        """Asks what they hold."""
        for shard, mass in self._shards.ask(dict.fromkeys(shards, RemoteTable.mass)).items():
            shard.size, shard.total = mass


def _checked(priorities: Any, count: int, what: str) -> np.ndarray:
    """Priorities [count] that all shards will take."""
    given = np.asarray(priorities, np.float32)
    if given.shape != (count,):
        raise ValueError(f"priorities must have shape {[count]}, got {list(given.shape)}")
    if not (np.isfinite(given) & (given >= 0)).all():
        raise error_of(_BAD_PRIORITY, what)
    return given
