"""Shards of a table, one on each server, with reconnection of lost ones."""

import functools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from accel_rl.remote.client import ReplayClient
from accel_rl.remote.daemons import DaemonPool
from accel_rl.remote.errors import ConnectionLost, NoSuchTable, OutcomeUnknown, RemoteError
from accel_rl.remote.links import Served, lane
from accel_rl.remote.schema import TableSpec
from accel_rl.remote.table import RemoteTable

T = TypeVar("T")
Address: TypeAlias = str | Served | list[str] | tuple[str, ...]
"""Address of a server, a server in this process, or the addresses of several shards."""

RECONNECT = 1.0  # seconds of reconnecting before a shard counts as lost
PATIENCE = 10.0  # seconds to wait for a shard when all are lost
PAUSE = 0.005  # seconds between polls while all are lost
LOOK = 0.5  # seconds between attempts to reach a lost shard


def first_of(address: Address) -> str | Served:
    """Return the server with the mailbox and the limiter: the only one, or the first."""
    return address[0] if isinstance(address, list | tuple) else address


def lane_of(address: Address, number: int) -> Any:
    """Apply `links.lane` to the address, or to each of several."""
    if isinstance(address, list | tuple):
        return [lane(each, number) for each in address]
    return lane(address, number) if isinstance(address, str) else address


class Shard:
    """Shard of a table: a table on one server, with its size and total at the last reply.

    Args:
      number: index of the shard.
      address: of its server.
      secret: shared secret, if the server has one.
      spec: of the shard's table.
      timeout: seconds to wait for a reply.

    Attributes:
      size: items at the last reply; 0 while the shard is lost.
      total: sum of weights at the last reply; None if unknown.
      doubtful: True if the request that lost the shard may have been executed, or may yet be.
    """

    def __init__(
        self, number: int, address: Any, secret: bytes | None, spec: TableSpec, timeout: float
    ) -> None:
        self.number, self.address = number, address
        self.size = 0
        self.total: float | None = None
        self.doubtful = False
        self._secret, self._spec, self._timeout = secret, spec, timeout
        self._found: Future[tuple[ReplayClient, RemoteTable]] | None = None
        self._next_look = 0.0
        self._client: ReplayClient | None = None
        self._table: RemoteTable | None = None
        try:
            self._client, self._table = self._open()
        except ConnectionLost as error:
            self._lose(error)

    @property
    def lost(self) -> bool:
        """True from an unanswered request until the shard is reconnected."""
        return self._table is None

    def do(self, call: Callable[[RemoteTable], T]) -> T | None:
        """Return the call's result, or None if the shard is lost, before or during the call.

        Losing the shard issues a RuntimeWarning. A frozen server may still execute the call when
        it continues: see `doubtful`.
        """
        if self._table is None:
            return None
        try:
            return call(self._table)
        except (ConnectionLost, NoSuchTable) as error:  # no table: the server restarted
            self._lose(error)
            return None

    def find(self, pool: DaemonPool) -> None:
        """Try to reconnect a lost shard in a thread of the pool; do not wait."""
        if self._found is None:
            if time.monotonic() >= self._next_look:
                self._found = pool.submit(self._open)
        elif self._found.done():
            try:
                self._client, self._table = self._found.result()
            except RemoteError:
                self._next_look = time.monotonic() + LOOK
            self._found = None

    def close(self) -> None:
        """End the session and any reconnection."""
        if self._client is not None:
            self._client.close()
        if self._found is not None and not self._found.cancel():
            self._found.add_done_callback(_discard)

    def _lose(self, error: RemoteError) -> None:
        self._table, self.size, self.total = None, 0, None
        self.doubtful = isinstance(error, OutcomeUnknown)
        if self._client is not None:
            self._client.close()
        try:
            warnings.warn(
                f"shard {self.number} of the replay buffer, at {self.address}, is lost with what "
                f"it held: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
        except RuntimeWarning:  # a filter made it an error; the training continues regardless
            return

    def _open(self) -> tuple[ReplayClient, RemoteTable]:
        client = ReplayClient(
            self.address, self._secret, timeout=self._timeout, reconnect=RECONNECT
        )
        try:
            return client, client.table(self._spec)
        except BaseException:
            client.close()
            raise


class Shards:
    """All shards of a table, called in parallel; not thread-safe.

    Args:
      addresses: of the servers.
      secret: shared secret, if the servers have one.
      spec: of a shard's table.
      timeout: seconds to wait for a reply.

    Attributes:
      count: number of shards, lost ones included.
      losses: number of times that a connected shard was lost.
    """

    def __init__(
        self, addresses: Sequence[Any], secret: bytes | None, spec: TableSpec, timeout: float
    ) -> None:
        self.count, self.losses = len(addresses), 0
        self._open = True
        # Twice as many threads: half of them reconnect lost shards.
        self._pool = DaemonPool(2 * len(addresses), "shard")
        self._all: list[Shard] = []
        try:
            for number, address in enumerate(addresses):
                self._all.append(Shard(number, address, secret, spec, timeout))
            if self.lost == self.count:
                raise ConnectionLost(f"none of the {self.count} shards can be reached")
        except BaseException:
            self.close()
            raise

    @property
    def lost(self) -> int:
        """Number of shards that are lost now."""
        return sum(shard.lost for shard in self._all)

    @property
    def size(self) -> int:
        """Number of items at the last replies."""
        return sum(shard.size for shard in self._all)

    def live(self) -> list[Shard]:
        """Return the connected shards; if all are lost, wait up to `PATIENCE` seconds for one.

        Raises:
          ConnectionLost: if none reconnects, or `end` is called.
        """
        until = time.monotonic() + PATIENCE
        while self._open:
            for shard in self._all:
                if shard.lost:
                    shard.find(self._pool)
            live = [shard for shard in self._all if not shard.lost]
            if live:
                return live
            if time.monotonic() > until:
                raise ConnectionLost(f"all {self.count} shards of the replay buffer are lost")
            time.sleep(PAUSE)
        raise ConnectionLost("the table is closed")

    def ask(self, calls: Mapping[Shard, Callable[[RemoteTable], T]]) -> dict[Shard, T]:
        """Call live shards in parallel; return the results of those that are not lost."""
        work = list(calls.items())
        # The last call runs in this thread, which would otherwise only wait.
        futures = [
            self._pool.submit(functools.partial(shard.do, call)) for shard, call in work[:-1]
        ]
        answers: dict[Shard, T | None] = {}
        errors = []
        for place in reversed(range(len(work))):  # this thread's own call comes first
            shard, call = work[place]
            try:
                answers[shard] = futures[place].result() if place < len(futures) else shard.do(call)
            except Exception as error:
                errors.append(error)
        self.losses += sum(shard.lost for shard in calls)
        if errors:
            raise errors[0]
        found = {shard: answers[shard] for shard in calls}
        return {shard: answer for shard, answer in found.items() if answer is not None}

    def end(self) -> None:
        """End a `live` of another thread that waits for lost shards."""
        self._open = False

    def close(self) -> None:
        """End all sessions. Idempotent."""
        self.end()
        for shard in self._all:
            shard.close()
        self._pool.close()


def _discard(found: "Future[tuple[ReplayClient, RemoteTable]]") -> None:
    if found.exception() is None:
        found.result()[0].close()
