"""Worker threads, their queues and counters, with accounts of waiting and working time."""

import contextlib
import threading
import time
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from accel_rl.types import PyTree

PATIENCE = 30.0  # seconds for a worker to end its present step


class Stopped(Exception):
    """Raised in a waiting worker when all workers stop."""


class WorkerSpan(NamedTuple):
    """Time that a worker spent in one step."""

    worker: str
    step: str
    start: float  # seconds since the workers began
    end: float


class Workers:
    """Threads that stop together when one fails; the latest `spans` steps are kept."""

    def __init__(self, spans: int = 0) -> None:
        # All conditions share one lock. Each queue and counter has a condition of its own, so
        # that a change wakes only its waiters; `changed` is for everything else.
        self._lock = threading.RLock()
        self.changed = threading.Condition(self._lock)
        self._conditions = [self.changed]
        self.error: BaseException | None = None
        self.timeline: deque[WorkerSpan] = deque(maxlen=spans)
        self.waited: dict[str, float] = defaultdict(float)  # seconds, of each worker
        self.worked: dict[str, float] = defaultdict(float)
        self._overlapped = 0.0
        self._working = 0
        self._stopped = False
        self._running = 0
        self._threads: list[threading.Thread] = []
        self._began = self._noted = time.perf_counter()

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Start a worker."""

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
        """Make a condition that shares the lock of `changed`."""
        with self.changed:
            self._conditions.append(threading.Condition(self._lock))
            return self._conditions[-1]

    def stop(self) -> None:
        """Stop all workers where they next wait."""
        with self.changed:
            self._stopped = True
            for each in self._conditions:
                each.notify_all()

    def join(self) -> None:
        """Join all workers; warn of one that does not end."""
        deadline = time.perf_counter() + PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.perf_counter()))
            if thread.is_alive():
                warnings.warn(f"worker {thread.name!r} has not ended", RuntimeWarning, stacklevel=2)

    @property
    def ended(self) -> bool:
        """True if all workers have stopped or finished."""
        return self._stopped or self._running == 0

    @property
    def seconds(self) -> float:
        """Seconds since the workers began."""
        return time.perf_counter() - self._began

    def wait_for(self, changed: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait in a worker until `ready`; `changed`, from `condition`, must be held."""
        began = time.perf_counter()
        # `stop` wakes every condition, so a worker that waits for a dead one ends, too.
        changed.wait_for(lambda: self._stopped or ready())
        self.waited[threading.current_thread().name] += time.perf_counter() - began
        if self._stopped:
            raise Stopped

    @contextlib.contextmanager
    def working(self, step: str) -> Iterator[None]:
        """Account for the time of a step."""
        name, start = threading.current_thread().name, self._note(1)
        try:
            yield
        finally:
            end = self._note(-1)
            self.worked[name] += end - start
            self.timeline.append(WorkerSpan(name, step, start, end))

    def overlapped(self) -> float:
        """Return the seconds during which two or more workers were in a step."""
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
    """First-in first-out queue; `put` waits while it is full, `get` while it is empty.

    Args:
      workers: the threads that put and get.
      size: most items; None for no limit.
      items: initial items.
    """

    def __init__(
        self, workers: Workers, size: int | None = None, items: Iterable[PyTree] = ()
    ) -> None:
        self._workers, self._changed = workers, workers.condition()
        self._size = size
        self._items = deque(items)
        self.found = [0, 0]  # sum over gets of the items found; number of gets

    def put(self, item: PyTree) -> None:
        """Append an item; raise Stopped if the workers stop."""
        with self._changed:
            self._workers.wait_for(
                self._changed, lambda: self._size is None or len(self._items) < self._size
            )
            self._items.append(item)
            self._changed.notify_all()

    def get(self) -> PyTree:
        """Take the oldest item; raise Stopped if the workers stop."""
        with self._changed:
            self.found[0] += len(self._items)
            self.found[1] += 1
            self._workers.wait_for(self._changed, lambda: bool(self._items))
            self._changed.notify_all()
            return self._items.popleft()

    def rest(self) -> list[PyTree]:
        """Return the items left."""
        return list(self._items)


class Counter:
    """Monotonic counter that workers can wait for."""

    def __init__(self, workers: Workers, value: int = 0) -> None:
        self._workers, self._changed = workers, workers.condition()
        self.value = value

    def advance(self, value: int) -> None:
        """Set the value and wake its waiters."""
        with self._changed:
            self.value = value
            self._changed.notify_all()

    def wait_for(self, value: int) -> None:
        """Wait until the value is at least this; raise Stopped if the workers stop."""
        with self._changed:
            self._workers.wait_for(self._changed, lambda: self.value >= value)


class Restarts:
    """Budget of restarts, shared by all actors."""

    def __init__(self, limit: int) -> None:
        self.count = 0  # so far
        self._limit = limit
        self._lock = threading.Lock()

    def take(self, error: Exception) -> bool:
        """Return whether this thread's actor may restart after the error; if so, count and warn."""
        with self._lock:
            if self.count == self._limit:
                return False
            self.count += 1
            left = self._limit - self.count
        warnings.warn(
            f"{threading.current_thread().name!r} restarts after "
            f"{type(error).__name__}: {error} ({left} restarts left)",
            RuntimeWarning,
            stacklevel=2,
        )
        return True
