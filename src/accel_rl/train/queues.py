"""Threads that wait for one another: queues, counters, and an account of who waited and worked."""

import contextlib
import threading
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

PATIENCE = 30.0  # seconds that a worker is given to end its present step


class Stopped(Exception):
    """Raised in a worker that waits when all are to stop."""


class Span(NamedTuple):
    """A step that a worker took."""

    worker: str
    step: str
    start: float  # seconds since the workers began
    end: float


class Workers:
    """Threads that stop together when one fails.

    Args:
      spans: how many of the last spans are kept.
    """

    def __init__(self, spans: int = 0) -> None:
        # Whether workers run, and what others than they wait for. All conditions share one lock,
        # but each thing has its own, so that a change wakes only those who wait for it.
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._conditions = [self.changed]
        self.error: BaseException | None = None
        self.timeline: deque[Span] = deque(maxlen=spans)
        self.waited: dict[str, float] = defaultdict(float)  # seconds, of each worker
        self.worked: dict[str, float] = defaultdict(float)
        self._overlapped = 0.0
        self._working = 0
        self._stopped = False
        self._running = 0
        self._threads: list[threading.Thread] = []
        self._began = self._noted = time.perf_counter()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Starts a worker."""

        def run() -> None:
            try:
                work()
            except Stopped:
                pass
            except BaseException as error:
                with self.changed:
                    if self.error is None and not self._stopped:
                        error.add_note(f"in the pipeline's worker {name!r}")
                        self.error = error
                self.stop()
            finally:
                with self.changed:
                    self._running -= 1
                    self.changed.notify_all()

        self.waited[name] = self.worked[name] = 0.0
        with self.changed:
            self._running += 1
        # A daemon, so that one that hangs in a user's code does not keep the program from ending.
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def condition(self) -> threading.Condition:
        """For one thing that workers wait for; its lock is that of `changed`."""
        with self.changed:
            self._conditions.append(threading.Condition(self._lock))
            return self._conditions[-1]

    def stop(self) -> None:
        """Lets all workers end where they next wait."""
        with self.changed:
            self._stopped = True
            for each in self._conditions:
                each.notify_all()

    def join(self) -> None:
        """Waits for the workers to end; warns of one that does not."""
        deadline = time.perf_counter() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.perf_counter()))
            if thread.is_alive():
                warnings.warn(f"worker {thread.name!r} has not ended", RuntimeWarning, stacklevel=2)

    @property
    def ended(self) -> bool:
        """Whether no worker has anything left to do."""
        return self._stopped or self._running == 0

    @property
    def seconds(self) -> float:
        """Since the workers began."""
        return time.perf_counter() - self._began

    def wait_for(self, changed: threading.Condition, ready: Callable[[], bool]) -> None:
        """Waits in a worker; `changed`, one of `condition`, must be held.

        Raises:
          Stopped: if all are to stop.
        """
        began = time.perf_counter()
        changed.wait_for(lambda: self._stopped or ready())
        self.waited[threading.current_thread().name] += time.perf_counter() - began
        if self._stopped:
            raise Stopped

    @contextlib.contextmanager
    def working(self, step: str) -> Iterator[None]:
        """Notes that the worker is at a step."""
        name, start = threading.current_thread().name, self._note(1)
        try:
            yield
        finally:
            end = self._note(-1)
            self.worked[name] += end - start
            self.timeline.append(Span(name, step, start, end))

    def overlapped(self) -> float:
        """Seconds during which two workers or more were at a step."""
        self._note(0)
        return self._overlapped

    def _note(self, more: int) -> float:
        with self.changed:
            now = time.perf_counter()
            if self._working > 1:
                self._overlapped += now - self._noted
            self._noted = now
            self._working += more
            return now - self._began


class Queue:
    """First in, first out; `put` waits while it is full, `get` while it is empty.

    Args:
      workers: who put and get.
      size: most items; None: no limit.
      items: that are in it from the start.
    """

    def __init__(
        self, workers: Workers, size: int | None = None, items: Iterable[Any] = ()
    ) -> None:
        self._workers, self._changed = workers, workers.condition()
        self._size = size
        self._items = deque(items)
        self.found = [0, 0]  # items that were there at the gets so far, in all; and the gets

    def put(self, item: Any) -> None:
        """Adds an item. Raises Stopped if all are to stop."""
        with self._changed:
            self._workers.wait_for(
                self._changed, lambda: self._size is None or len(self._items) < self._size
            )
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> Any:
        """The oldest item, taken out. Raises Stopped if all are to stop."""
        with self._changed:
            self.found[0] += len(self._items)
            self.found[1] += 1
            self._workers.wait_for(self._changed, lambda: bool(self._items))
            self._changed.notify_all()
            return self._items.popleft()

    def rest(self) -> list[Any]:
        """What nobody has taken."""
        return list(self._items)


class Counter:
    """A number that only grows, and that can be waited for."""

    def __init__(self, workers: Workers, value: int = 0) -> None:
        self._workers, self._changed = workers, workers.condition()
        self.value = value

    def advance(self, value: int) -> None:
        """Sets it."""
        with self._changed:
            self.value = value
            self._changed.notify_all()

    def wait_for(self, value: int) -> None:
        """Waits until it is at least so much. Raises Stopped if all are to stop."""
        with self._changed:
            self._workers.wait_for(self._changed, lambda: self.value >= value)
