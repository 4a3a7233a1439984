"""The servers of a sharded table, each there, or lost and looked for."""

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
"""Of a server, or one in this process; or of several, that hold a part of the memory each."""

RECONNECT = 1.0  # seconds for which a break is mended before a shard counts as lost
PATIENCE = 10.0  # seconds for which shards are looked for when all are lost
PAUSE = 0.005  # seconds between two looks whether one was found
LOOK = 0.5  # seconds between two looks for a lost one


def first_of(address: Address) -> str | Served:
    """The server that has the mailbox and the limiter: the only one, or the first.

    Raises:
      ValueError: if there is none.
    """
    if isinstance(address, list | tuple):
        if not address:
            raise ValueError("address must be that of a server, or several, got none")
        return address[0]
    return address


def lane_of(address: Address, number: int) -> Any:
    """The address, or each of several, for connection `number` of a program: see `links.lane`.

    Raises:
      ValueError: if one is none.
    """
    if isinstance(address, list | tuple):
        return [lane(each, number) for each in address]
    return lane(address, number) if isinstance(address, str) else address


def as_text(address: Address) -> str | list[str]:
    """The address as it can be told to other processes.

    Raises:
      TypeError: if it is no text, as that of a server of this process.
      ValueError: if there is none.
    """
    first_of(address)
    parts = list(address) if isinstance(address, list | tuple) else [address]
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(
                "address must be text, or a list of texts, as other processes are told it, got "
                f"{type(part).__name__}"
            )
    return [str(part) for part in parts] if isinstance(address, list | tuple) else str(address)


class Shard:
    """A table of one server, of which what it held last is remembered.

    Args:
      number: of the shard, from 0 on.
      address: of its server.
      secret: what both sides know, if the server has one.
      spec: of its table.
      timeout: seconds that a reply may take.

    Attributes:
      size: items, by its last reply; 0 while it is lost.
      total: sum of weights, by its last reply; None where that is not known.
      doubtful: whether, when it was lost, it may have done what it was asked, or may do it yet.
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
        """Whether it did not answer when it was asked last, and was not found since."""
        return self._table is None

    def do(self, call: Callable[[RemoteTable], T]) -> T | None:
        """What the call returns; None if the shard is lost, now or by this call.

        With a RuntimeWarning when it is lost. A server that is frozen may carry the call out when
        it goes on: see `doubtful`.
        """
        if self._table is None:
            return None
        try:
            return call(self._table)
        except (ConnectionLost, NoSuchTable) as error:  # no table: a server that began anew
            self._lose(error)
            return None

    def find(self, pool: DaemonPool) -> None:
        """Looks for a lost one in another thread, and takes what was found; does not wait."""
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
        """Ends its session; nothing is looked for any more."""
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
                f"shard {self.number} of the replay memory, at {self.address}, is lost with what "
                f"it held: {error}",
                RuntimeWarning,
                stacklevel=4,
            )
        except RuntimeWarning:  # made an error by a filter: the training goes on all the same
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
    """All shards of a table, which are asked side by side; for one thread at a time.

    Args:
      addresses: of the servers.
      secret: what both sides know, if the servers have one.
      spec: of a shard's table.
      timeout: seconds that a reply may take.

    Attributes:
      count: shards, lost or not.
      losses: how often one was lost after it had been there.

    Raises:
      ConnectionLost: if no server can be reached.
      RemoteError: if one has another table of that name, or does not know the secret.
    """

    def __init__(
        self, addresses: Sequence[Any], secret: bytes | None, spec: TableSpec, timeout: float
    ) -> None:
        self.count, self.losses = len(addresses), 0
        self._open = True
        # As many again, to look for lost ones.
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
        """How many are lost now."""
        return sum(shard.lost for shard in self._all)

    @property
    def size(self) -> int:
        """Items, by the last replies."""
        return sum(shard.size for shard in self._all)

    def live(self) -> list[Shard]:
        """Those that are there, waiting a while for the first if all are lost.

        Raises:
          ConnectionLost: if none comes back, or they are closed.
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
                raise ConnectionLost(f"all {self.count} shards of the replay memory are lost")
            time.sleep(PAUSE)
        raise ConnectionLost("the table is closed")

    def ask(self, calls: Mapping[Shard, Callable[[RemoteTable], T]]) -> dict[Shard, T]:
        """What live shards answer, all at once, but for those that are lost by it.

        Raises:
          RemoteError: what a shard refused, once all have answered.
        """
        work = list(calls.items())
        # The last one in this thread, which would only wait.
        futures = [
            self._pool.submit(functools.partial(shard.do, call)) for shard, call in work[:-1]
        ]
        answers: dict[Shard, T | None] = {}
        errors = []
        for place in reversed(range(len(work))):
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
        """Ends a call, of another thread, that waits for lost ones."""
        self._open = False

    def close(self) -> None:
        """Ends their sessions; a second time does nothing."""
        self.end()
        for shard in self._all:
            shard.close()
        self._pool.close()


def _discard(found: "Future[tuple[ReplayClient, RemoteTable]]") -> None:
    if found.exception() is None:
        found.result()[0].close()
