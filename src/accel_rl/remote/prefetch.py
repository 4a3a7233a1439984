"""Prefetching of samples while the learner processes the previous one."""

import queue
import threading
from collections.abc import Iterable, Iterator

from accel_rl.arguments import whole
from accel_rl.remote.buffers import RemoteSample
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import ConnectionLost, TryAgain

_LOOK_SECONDS = 0.1  # seconds between checks of a waiting thread for `close`


class Prefetcher(Closing):
    """Iterator over samples of one table, which a thread draws ahead of time.

    It needs its own client, so that a sample that waits for the limiter does not block other calls.
    A sample may be `depth` + 1 updates old when it is returned.
    """

    def __init__(
        self, client: ReplayClient, table: str, seeds: Iterable[int], batch: int, depth: int = 2
    ) -> None:
        """Start drawing.

        Args:
          client: used by nothing else; `close` closes it.
          table: name of an existing table.
          seeds: of successive samples, each from 0 to 2^64 - 1.
          batch: items in a sample.
          depth: most samples that are ready at a time.
        """
        whole("depth", depth, 1)
        whole("batch", batch, 1)
        self._client = client
        self._table = client.table(table)
        self._seeds = iter(seeds)
        self._batch = batch
        self._ready: queue.Queue[RemoteSample | BaseException] = queue.Queue(depth)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._fetch, name="prefetch", daemon=True)
        self._thread.start()

    def _fetch(self) -> None:
        result: RemoteSample | BaseException
        try:
            for seed in self._seeds:
                sample = self._draw(seed)
                if sample is None or not self._put(sample):
                    return
            result = StopIteration()
        except Exception as error:
            result = error
        self._put(result)

    def _draw(self, seed: int) -> RemoteSample | None:
        while not self._closing.is_set():
            try:
                return self._table.sample(seed, self._batch, wait=_LOOK_SECONDS)
            except TryAgain:
                continue
        return None

    def _put(self, result: RemoteSample | BaseException) -> bool:
        while not self._closing.is_set():
            try:
                self._ready.put(result, timeout=_LOOK_SECONDS)
                return True
            except queue.Full:
                continue
        return False

    def __iter__(self) -> Iterator[RemoteSample]:
        return self

    def __next__(self) -> RemoteSample:
        """Return the next sample; wait for it.

        Raises:
          ConnectionLost: if the connection is lost or the prefetcher closed.
          RemoteError: if drawing the sample failed otherwise.
        """
        while not self._closing.is_set():
            try:
                result = self._ready.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                self._ready.put(result)  # for the next call, too
                raise result
            return result
        raise ConnectionLost("the prefetcher is closed")

    def close(self) -> None:
        """End the thread and close the client. Idempotent."""
        self._closing.set()
        self._thread.join()
        self._client.close()
