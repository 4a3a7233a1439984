"""Workers that work and wait, in simulated time: how long steps take when several run at once.

A worker is a generator of what it does next: it works at a step, puts into a queue or gets from
one. Steps that run at the same time slow each other down, each pair by its own factor.
"""

import dataclasses
import math
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple

from accel_rl.train.pipeline.workers import WorkerSpan


class Work(NamedTuple):
    """Works at a step, that takes so many seconds alone."""

    step: str
    seconds: float


class Put(NamedTuple):
    """Puts a token into a queue; waits while it is full."""

    queue: str


class Get(NamedTuple):
    """Takes a token from a queue; waits while it is empty."""

    queue: str


Worker = Generator[Work | Put | Get, None, None]


@dataclasses.dataclass
class Tokens:
    """A queue."""

    held: int = 0
    size: float = math.inf


@dataclasses.dataclass
class _Running:
    worker: str
    work: Work
    start: float
    left: float  # seconds of work alone


def simulate(
    workers: Mapping[str, Worker],
    queues: Mapping[str, Tokens],
    slowdown: Callable[[str, str], float],
    handoff: float = 0.0,
) -> list[WorkerSpan]:
    """Runs the workers until none has anything left to do.

    Args:
      workers: by name.
      queues: by name; they are changed.
      slowdown: slowdown(step, other): how many times longer a step takes while the other runs. Of
        more than two, the factors multiply.
      handoff: seconds before a worker that waited goes on.

    Returns:
      What they did, in the order in which it ended; handing off is a step, "handoff".

    Raises:
      RuntimeError: if they wait for one another.
    """
    now, spans = 0.0, []
    running: list[_Running] = []
    waiting: list[tuple[str, Put | Get]] = []
    woken: dict[str, Work] = {}  # what a worker does once it is awake

    def advance(name: str, waited: bool) -> None:
        """Lets a worker go on until it works or waits."""
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
        """Lets all go on that need not wait any more; they may wake others in turn."""
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
    """Moves a token if it can be."""
    change = 1 if isinstance(action, Put) else -1
    if not 0 <= queue.held + change <= queue.size:
        return False
    queue.held += change
    return True


def _rate(each: _Running, running: list[_Running], slowdown: Callable[[str, str], float]) -> float:
    factors = (slowdown(each.work.step, o.work.step) for o in running if o is not each)
    return 1 / math.prod(factors)
