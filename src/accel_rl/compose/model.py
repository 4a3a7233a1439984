"""Performance model: iteration time and energy of a mapping, from the costs of its steps.

The executors' workers run in simulated time, with the costs of their steps, the slowdowns of
concurrent steps, and the lags of the schedule. The iteration time is read off in the steady state.
PEARL's closed form, a special case of this model, is in `pearl`. See `docs/compose-model.md`.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator
from collections.abc import Mapping as Table

from accel_rl.arguments import whole
from accel_rl.compose.costs import Costs, Source
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.simulate import Get, Put, Tokens, Work, Worker, simulate
from accel_rl.compose.workload import STEPS
from accel_rl.hardware_models import energy
from accel_rl.train import Schedule
from accel_rl.train.pipeline.workers import WorkerSpan

WINDOW = 12  # iterations of the steady state that are averaged


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Modelled iteration of a mapping: time, energy, busy devices and timeline."""

    mapping: Mapping
    seconds: float  # of an iteration
    samples: int  # trained in an iteration
    busy: Table[str, float]  # seconds in which each device works in an iteration
    joules: float | None  # of an iteration; None if a device's power is unknown
    source: Source  # "modelled" if any cost is, else "simulated" if any is
    timeline: tuple[WorkerSpan, ...] = ()

    @property
    def throughput(self) -> float:
        """Trained samples a second."""
        return self.samples / self.seconds

    @property
    def samples_per_joule(self) -> float | None:
        """Trained samples a joule; None if the joules are unknown or 0."""
        return self.samples / self.joules if self.joules else None


def estimate(
    mapping: Mapping,
    costs: Costs,
    schedule: Schedule,
    samples: int,
    power: Table[str, energy.Power] | None = None,
) -> Estimate:
    """Predict an iteration of a mapping.

    Args:
      mapping: devices of the roles, and executor.
      costs: of its steps.
      schedule: lags, and updates of an iteration.
      samples: trained in an iteration.
      power: of every device of the platform, used or not. The joules are None if it is None or
        lacks a device of the mapping.
    """
    whole("samples", samples, 1)
    if mapping.executor == "fused":
        cost = costs.fused(mapping)
        seconds, sources = cost.seconds * costs.stretched(mapping), {cost.source}
        busy = {mapping.learner[0]: seconds}
        timeline: tuple[WorkerSpan, ...] = ()
    else:
        stretch = costs.stretched(mapping)
        timeline = tuple(
            span._replace(start=span.start * stretch, end=span.end * stretch)
            for span in _steady(_simulated(mapping, costs, schedule), schedule)
        )
        # Where queues fill slowly, the window precedes the steady state and is too fast.
        least = _least_seconds(mapping, costs, schedule) * stretch
        seconds = max(*(span.end / WINDOW for span in timeline), least)
        sources = {costs.step(mapping, step).source for step in STEPS}
        busy = {name: _busy(name, mapping, timeline) / WINDOW for name in mapping.devices}
    joules = None
    if power is not None and set(mapping.devices) <= set(power):
        joules = energy.iteration_joules(power, busy, seconds)
    source: Source = "measured"
    if sources != {"measured"}:
        source = "modelled" if "modelled" in sources else "simulated"
    return Estimate(mapping, seconds, samples, busy, joules, source, timeline)


def _least_seconds(mapping: Mapping, costs: Costs, schedule: Schedule) -> float:
    """Return a lower bound of simulated seconds: work of the busiest worker or of the buffer."""
    seconds = {step: costs.step(mapping, step).seconds for step in STEPS}
    calls = _calls(schedule, costs.group)
    # Asynchronous workers of the buffer take turns, so both executors do its steps one by one.
    buffer = seconds["insert"] + calls * seconds["sample"]
    if costs.group is None:
        buffer += calls * seconds["update"]
    return max(seconds["collect"], buffer, calls * seconds["learn"] + seconds["sync"])


def _calls(schedule: Schedule, group: int | None) -> int:
    """Return the number of `sample` calls in an iteration, which is that of `learn` calls."""
    return schedule.updates // (group or 1)


def _busy(name: str, mapping: Mapping, timeline: tuple[WorkerSpan, ...]) -> float:
    """Return the seconds in which a device works on at least one step."""
    total, until = 0.0, 0.0
    for span in sorted(timeline, key=lambda span: span.start):
        if span.step != "handoff" and name in mapping.busy(span.step):
            total += max(0.0, span.end - max(span.start, until))
            until = max(until, span.end)
    return total


def _simulated(mapping: Mapping, costs: Costs, schedule: Schedule) -> list[WorkerSpan]:
    around = costs.bookkeeping
    seconds = {step: costs.step(mapping, step).seconds + around for step in STEPS}

    @functools.cache  # the simulation asks at each event, for a few pairs
    def slowdown(step: str, other: str) -> float:
        if "handoff" in (step, other):
            return 1.0
        return costs.slowdown(mapping, step, other)

    make = _deterministic if mapping.executor == "deterministic" else _asynchronous
    workers, queues = make(seconds, schedule, costs.group)
    return simulate(workers, queues, slowdown, costs.handoff)


def _fill(schedule: Schedule) -> int:
    """Return the number of iterations after which queue lengths are steady."""
    return 8 + 2 * (schedule.policy_lag + schedule.priority_lag)


def _total(schedule: Schedule) -> int:
    """Return the number of iterations to simulate.

    Those after the window let actors run ahead of the learner until the window ends.
    """
    return 2 * _fill(schedule) + WINDOW


def _steady(spans: list[WorkerSpan], schedule: Schedule) -> tuple[WorkerSpan, ...]:
    """Return the spans of the learner's steady-state window, clipped to it and shifted to 0."""
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
    """Make workers and queues of the deterministic executor of `train.pipelined`, after warm-up."""
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
    """Make workers and queues of the asynchronous executor of `train.pipelined`, after warm-up."""
    size, total = max(1, schedule.policy_lag), _total(schedule)
    calls = _calls(schedule, group)
    queues = {
        "policies": Tokens(size),
        "rollouts": Tokens(0, size),
        "inserted": Tokens(1),
        "batches": Tokens(0, max(1, schedule.priority_lag)),
        # Unbounded where no updater takes from it, so that the learner never blocks on it.
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
