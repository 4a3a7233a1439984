"""Our model: an iteration of a mapping, from what its steps cost.

The executors' workers run in simulated time with the costs of their steps, the slowdowns of steps
that run at once, and the lags of the schedule; what an iteration takes is read off in the steady
state. PEARL's closed form, which it contains as a special case, is in `pearl`. See
`docs/compose-model.md`.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table

from accel_rl.arguments import instance, whole
from accel_rl.compose import energy
from accel_rl.compose.costs import Costs, Source
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.simulate import Get, Put, Tokens, Work, Worker, simulate
from accel_rl.compose.workload import STEPS
from accel_rl.train import Schedule
from accel_rl.train.pipeline.workers import WorkerSpan

WINDOW = 12  # iterations over which the steady state is read off


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What the model says of a mapping."""

    mapping: Mapping
    seconds: float  # of an iteration
    samples: int  # trained in it
    busy: Table[str, float]  # seconds of each device in an iteration
    joules: float | None  # of an iteration; None where a device's power is not known
    source: Source  # "modelled" or "simulated" if any cost that it rests on is
    timeline: tuple[WorkerSpan, ...] = ()

    @property
    def throughput(self) -> float:
        """Trained samples a second."""
        return self.samples / self.seconds


def estimate(
    mapping: Mapping,
    costs: Costs,
    schedule: Schedule,
    samples: int,
    power: Table[str, energy.Power] | None = None,
) -> Estimate:
    """Predicts an iteration of a mapping.

    Args:
      mapping: which device takes which role.
      costs: of its steps.
      schedule: lags, and how many updates an iteration has.
      samples: that an iteration trains.
      power: of every device of the platform, used or not; None or incomplete: no joules.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if `samples` is below 1.
      KeyError: if a step's cost is missing.
    """
    instance("mapping", mapping, Mapping)
    instance("costs", costs, Costs)
    instance("schedule", schedule, Schedule)
    whole("samples", samples, 1)
    if mapping.executor == "fused":
        cost = costs.fused(mapping)
        seconds, sources = cost.seconds, {cost.source}
        busy = {mapping.learner[0]: seconds}
        timeline: tuple[WorkerSpan, ...] = ()
    else:
        stretch = costs.stretched(mapping)
        timeline = tuple(
            span._replace(start=span.start * stretch, end=span.end * stretch)
            for span in _steady(_simulated(mapping, costs, schedule), schedule)
        )
        # Where queues fill slowly the window may still be too fast.
        least = least_seconds(
            mapping.executor, lambda step: costs.step(mapping, step).seconds, schedule, costs.group
        )
        seconds = max(*(span.end / WINDOW for span in timeline), least * stretch)
        sources = {costs.step(mapping, step).source for step in STEPS}
        busy = {name: _busy(name, mapping, timeline) / WINDOW for name in mapping.devices}
    joules = None
    if power is not None and set(mapping.devices) <= set(power):
        joules = energy.iteration_joules(power, busy, seconds)
    source: Source = "measured"
    if sources != {"measured"}:
        source = "modelled" if "modelled" in sources else "simulated"
    return Estimate(mapping, seconds, samples, busy, joules, source, timeline)


def least_seconds(
    executor: str, cost: Callable[[str], float], schedule: Schedule, group: int | None = None
) -> float:
    """What no iteration undercuts: the work of the worker that has most of it.

    Args:
      executor: of a mapping.
      cost: seconds of a step, of `STEPS` or "fused".
      schedule: how many updates an iteration has.
      group: as of `Costs`.
    """
    if executor == "fused":
        return cost("fused")
    calls = _calls(schedule, group)
    memory = [cost("insert"), calls * cost("sample")]
    if group is None:
        memory.append(calls * cost("update"))
    longest = sum(memory) if executor == "deterministic" else max(memory)
    return max(cost("collect"), longest, calls * cost("learn") + cost("sync"))


def _calls(schedule: Schedule, group: int | None) -> int:
    """Of `sample` and `learn` in an iteration."""
    return schedule.updates // (group or 1)


def _busy(name: str, mapping: Mapping, timeline: tuple[WorkerSpan, ...]) -> float:
    """Seconds in which a device is at one step or more."""
    total, until = 0.0, 0.0
    for span in sorted(timeline, key=lambda span: span.start):
        if span.step != "handoff" and name in mapping.busy(span.step):
            total += max(0.0, span.end - max(span.start, until))
            until = max(until, span.end)
    return total


def _simulated(mapping: Mapping, costs: Costs, schedule: Schedule) -> list[WorkerSpan]:
    around = costs.bookkeeping
    seconds = {step: costs.step(mapping, step).seconds + around for step in STEPS}

    def slowdown(step: str, other: str) -> float:
        if "handoff" in (step, other):
            return 1.0
        return costs.slowdown(mapping, step, other)

    make = _deterministic if mapping.executor == "deterministic" else _asynchronous
    workers, queues = make(seconds, schedule, costs.group)
    return simulate(workers, queues, slowdown, costs.handoff)


def _fill(schedule: Schedule) -> int:
    """Iterations after which queues are as full as they will be."""
    return 8 + 2 * (schedule.policy_lag + schedule.priority_lag)


def _total(schedule: Schedule) -> int:
    """Iterations that are simulated: after the window as many as actors may be ahead."""
    return 2 * _fill(schedule) + WINDOW


def _steady(spans: list[WorkerSpan], schedule: Schedule) -> tuple[WorkerSpan, ...]:
    """What happens between the ends of two iterations, as the learner counts them."""
    ends = [span.end for span in spans if span.step == "sync"]
    start, end = ends[_fill(schedule)], ends[_fill(schedule) + WINDOW]
    inside = [
        span._replace(start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in spans
        if span.end > start and span.start < end
    ]
    return tuple(inside)


def _deterministic(
    seconds: Table[str, float], schedule: Schedule, group: int | None
) -> tuple[dict[str, Worker], dict[str, Tokens]]:
    """The workers of `train.pipelined` with the deterministic executor, in steady state."""
    lag, late, total = schedule.policy_lag, schedule.priority_lag, _total(schedule)
    calls = _calls(schedule, group)
    queues = {
        "policies": Tokens(lag),
        "rollouts": Tokens(0, lag + 1),
        "batches": Tokens(0, late + 1),
        "priorities": Tokens(late),
    }

    def insert_and_sample() -> Worker:
        for _ in range(total):
            for _ in range(calls):
                yield Work("sample", seconds["sample"])
                yield Put("batches")
                if group is None:
                    yield Get("priorities")
                    yield Work("update", seconds["update"])
            yield Get("rollouts")
            yield Work("insert", seconds["insert"])

    workers = {
        "actor": _actor(seconds, schedule),
        "buffer": insert_and_sample(),
        "learner": _learner(seconds, schedule, group),
    }
    return workers, queues


def _asynchronous(
    seconds: Table[str, float], schedule: Schedule, group: int | None
) -> tuple[dict[str, Worker], dict[str, Tokens]]:
    """The workers of `train.pipelined` with the asynchronous executor, in steady state."""
    size, total = max(1, schedule.policy_lag), _total(schedule)
    calls = _calls(schedule, group)
    queues = {
        "policies": Tokens(size),
        "rollouts": Tokens(0, size),
        "inserted": Tokens(1),
        "batches": Tokens(0, max(1, schedule.priority_lag)),
        # Unlimited where nobody takes from it.
        "priorities": Tokens(0, size * schedule.updates if group is None else math.inf),
        "buffer": Tokens(1),
    }

    def step(name: str) -> Iterator[Work | Put | Get]:
        """Run one call of the buffer at a time."""
        yield Get("buffer")
        yield Work(name, seconds[name])
        yield Put("buffer")

    def insert() -> Worker:
        for _ in range(total):
            yield Get("rollouts")
            yield from step("insert")
            yield Put("inserted")

    def sample() -> Worker:
        for _ in range(total):
            yield Get("inserted")
            for _ in range(calls):
                yield from step("sample")
                yield Put("batches")

    def update() -> Worker:
        for _ in range(total * calls):
            yield Get("priorities")
            yield from step("update")

    workers = {
        "actor": _actor(seconds, schedule),
        "inserter": insert(),
        "sampler": sample(),
        "learner": _learner(seconds, schedule, group),
    }
    if group is None:
        workers["updater"] = update()
    return workers, queues


def _actor(seconds: Table[str, float], schedule: Schedule) -> Worker:
    for _ in range(_total(schedule)):
        yield Get("policies")
        yield Work("collect", seconds["collect"])
        yield Put("rollouts")


def _learner(seconds: Table[str, float], schedule: Schedule, group: int | None) -> Worker:
    for _ in range(_total(schedule)):
        for _ in range(_calls(schedule, group)):
            yield Get("batches")
            yield Work("learn", seconds["learn"])
            yield Put("priorities")
        yield Work("sync", seconds["sync"])
        yield Put("policies")
