"""Timing of calls: warmed up and repeated, alone or while another call repeats."""

import concurrent.futures
import functools
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from accel_rl.train.pipeline.workers import Queue, Workers

REPEATS = 7


class Timed(NamedTuple):
    """Seconds of a call."""

    median: float  # over repeats, each a mean over calls
    spread: float  # interquartile range of the repeats


def alone(call: Callable[[], object], seconds: float = 0.2) -> Timed:
    """Time a call by itself, for about `seconds` in all."""
    call()
    calls = max(1, int(seconds / REPEATS / max(once(call), 1e-7)))
    return _summary([_mean_of(call, calls) for _ in range(REPEATS)])


def once(call: Callable[[], object]) -> float:
    """Return the seconds of a single call."""
    return _mean_of(call, 1)


def together(
    first: Callable[[], object], second: Callable[[], object], seconds: float = 0.2
) -> tuple[float, float]:
    """Return mean seconds of two calls that repeat concurrently, each in its own thread."""
    start, stop = threading.Barrier(2), threading.Event()

    def repeat(call: Callable[[], object]) -> float:
        count = 0
        start.wait()
        began = time.perf_counter()
        try:
            while not (count and stop.is_set()):
                call()
                count += 1
        except Exception:
            stop.set()
            raise
        return (time.perf_counter() - began) / count

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [pool.submit(repeat, call) for call in (first, second)]
        try:
            stop.wait(seconds)
        finally:
            stop.set()
        one, other = (each.result() for each in running)
    return one, other


def handing_off(times: int = 300) -> float:
    """Return median seconds from a thread's notifying another until the other continues."""
    changed, turn = threading.Condition(), [0]
    taken: list[float] = []

    def reached(value: int) -> bool:
        return turn[0] == value

    def other() -> None:
        for number in range(times):
            with changed:
                changed.wait_for(functools.partial(reached, 2 * number + 1))
                turn[0] += 1
                changed.notify_all()

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    for number in range(times):
        began = time.perf_counter()
        with changed:
            turn[0] += 1
            changed.notify_all()
            changed.wait_for(functools.partial(reached, 2 * number + 2))
        taken.append((time.perf_counter() - began) / 2)
    thread.join()
    return float(np.median(taken))


def around_a_step() -> float:
    """Return the executor's overhead of a step, in seconds: accounting, and passing an item on."""
    workers = Workers()
    queue = Queue(workers)
    workers.start("none", lambda: None)

    def account() -> None:
        with workers.working("none"):
            pass
        queue.put(None)
        queue.get()

    found = alone(account, 0.05).median
    workers.join()
    return found


def _mean_of(call: Callable[[], object], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls


def _summary(means: list[float]) -> Timed:
    low, median, high = np.percentile(means, [25, 50, 75])
    return Timed(float(median), float(high - low))
