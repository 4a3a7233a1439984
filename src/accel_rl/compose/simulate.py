"""Discrete-event simulation of workers whose steps overlap and who block on queues.

A worker is a generator of actions: it works on a step, puts a token into a queue, or gets one.
Concurrent steps slow each other down, each pair by its own factor.
"""

import dataclasses
import math
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple

from accel_rl.train.pipeline.workers import WorkerSpan


class Work(NamedTuple):
    """Step to work on; it takes `seconds` when nothing else runs."""

    step: str
    seconds: float


class Put(NamedTuple):
    """Put of a token into a queue; waits while the queue is full."""

    queue: str


class Get(NamedTuple):
    """Take of a token from a queue; waits while the queue is empty."""

    queue: str


Worker = Generator[Work | Put | Get, None, None]


@dataclasses.dataclass
class Tokens:
    """Bounded queue of tokens, which are only counted."""

    held: int = 0
    size: float = math.inf


@dataclasses.dataclass
class _Running:
    worker: str
    work: Work
    start: float
    left: float  # seconds of work, if alone


def simulate(
    workers: Mapping[str, Worker],
    queues: Mapping[str, Tokens],
    slowdown: Callable[[str, str], float],
    handoff: float = 0.0,
) -> list[WorkerSpan]:
    """Run the workers until all have finished.

    Args:
      workers: by name.
      queues: by name; modified in place.
      slowdown: slowdown(step, other) is the factor on a step's time while the other runs. The
        factors of several other steps multiply.
      handoff: seconds before a worker that waited continues.

    Returns:
      Spans in the order of their ends; a hand-off is a span of the step "handoff".
    """
    now, spans = 0.0, []
    running: list[_Running] = []
    waiting: list[tuple[str, Put | Get]] = []
    woken: dict[str, Work] = {}  # work after the hand-off, by worker

    def advance(name: str, waited: bool) -> None:
        """Run a worker until it works or waits."""
        for action in workers[name]:
            if isinstance(action, Work):
                work = action
                if waited and handoff:
                    woken[name], work = action, Work("handoff", handoff)
                running.append(_Running(name, work, now, work.seconds))
                return
            if not _move(queues[action.queue], action):
                waiting.append((name, action))
                return

    def settle() -> None:
        """Resume all workers that need not wait any more; they may wake others in turn."""
        moved = True
        while moved:
            moved = False
            for each in list(waiting):
                name, action = each
                if _move(queues[action.queue], action):
                    waiting.remove(each)
                    advance(name, True)
                    moved = True

    for name in workers:
        advance(name, False)
    settle()
    while running:
        rates = [_rate(each, running, slowdown) for each in running]
        passed = min(each.left / rate for each, rate in zip(running, rates, strict=True))
        now += passed
        for each, rate in zip(running, rates, strict=True):
            each.left -= passed * rate
        # Rounding may leave a remainder of work in a step that has ended.
        done = [each for each in running if each.left <= 1e-12]
        running[:] = [each for each in running if each.left > 1e-12]
        for each in done:
            spans.append(WorkerSpan(each.worker, each.work.step, each.start, now))
            if each.worker in woken:
                work = woken.pop(each.worker)
                running.append(_Running(each.worker, work, now, work.seconds))
            else:
                advance(each.worker, False)
        settle()
    if waiting:
        raise RuntimeError(f"workers wait for one another: {waiting}")
    return spans


def _move(queue: Tokens, action: Put | Get) -> bool:
    """Move a token if the queue allows it; return True if it moved."""
    change = 1 if isinstance(action, Put) else -1
    if not 0 <= queue.held + change <= queue.size:
        return False
    queue.held += change
    return True


def _rate(each: _Running, running: list[_Running], slowdown: Callable[[str, str], float]) -> float:
    factors = (slowdown(each.work.step, o.work.step) for o in running if o is not each)
    return 1 / math.prod(factors)
