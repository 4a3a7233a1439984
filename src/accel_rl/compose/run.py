"""Runs of a mapping with the executors of `train`, and their measured iteration times."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table

import jax
import numpy as np

from accel_rl import train
from accel_rl.arguments import one_of
from accel_rl.compose.candidates import in_one_place, learners
from accel_rl.compose.devices import Device, find
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.placing import placement, program_for, stand_ins
from accel_rl.compose.workload import workload_of
from accel_rl.experiment import Experiment
from accel_rl.hardware_models.energy import Meter, Reading, Unreadable
from accel_rl.io.values import Json
from accel_rl.train import TrainState
from accel_rl.train.pipeline.workers import WorkerSpan
from accel_rl.types import Array

SPANS = 400  # latest worker steps that a run keeps


@dataclasses.dataclass(frozen=True)
class Ran:
    """Result of running a mapping: final state, metrics, measured times and joules."""

    mapping: Mapping
    state: TrainState
    rows: Sequence[Table[str, Json]]  # metrics, as logged by the executor
    ended: str  # "done", or the reason of an early end: "interrupted", "diverged: ..."
    seconds: float  # of an iteration that learns, median over rows; NaN for too few rows
    spread: float  # interquartile range over rows
    simulated: bool  # True if stand-ins ran for devices that cannot: times are not theirs
    readings: tuple[Reading, ...]  # joules of the whole run, from each readable counter
    unreadable: tuple[Unreadable, ...]  # boundaries without a reading, and why
    timeline: tuple[WorkerSpan, ...] = ()  # latest worker steps, in seconds


def run(
    experiment: Experiment,
    mapping: Mapping,
    key: Array,
    steps: int,
    *,
    devices: Table[str, Device] | None = None,
    simulate: bool = False,
    period: int | None = None,
    on_row: Callable[[Table[str, Json]], None] | None = None,
    restarts: int = 0,
) -> Ran:
    """Train an experiment with a mapping.

    Args:
      experiment: what to train.
      mapping: from a plan, or custom.
      key: PRNG key of the training.
      steps: environment steps.
      devices: by name; those of `compose.devices` if None.
      simulate: let the actor's device stand in for devices that cannot run. Results are what they
        would compute; times are not theirs.
      period: environment steps between rows; if None, `steps` / 100, or `steps` / 20 for the fused
        program, whose iterations may take microseconds.
      on_row: called with each row.
      restarts: of failing actors, asynchronous executor only; see `train.pipelined`.
    """
    devices = find(experiment.configuration.compose.devices) if devices is None else devices
    check(experiment, mapping, devices)
    absent = [name for name in mapping.devices if devices[name].status != "executable"]
    if absent and not simulate:
        status = ", ".join(f"{name} is {devices[name].status}" for name in absent)
        raise ValueError(
            f"mapping has devices that cannot run here: {status}. Ask to simulate it, or choose "
            "another mapping"
        )
    if restarts and mapping.executor != "asynchronous":
        raise ValueError(
            f"restarts is for the asynchronous executor, got {restarts} for {mapping.executor}"
        )
    real = stand_ins(mapping, devices)
    program = program_for(experiment, real, devices)
    timeline: tuple[WorkerSpan, ...] = ()
    with Meter() as meter:
        if real.executor == "fused":
            # Short rows would measure the loop around them.
            period = -(-steps // 20) if period is None else period
            with jax.default_device(placement(real, devices).index()):
                done = train.run(
                    program,
                    key,
                    steps,
                    period=period,
                    hyper=experiment.hyper,
                    loggers=() if on_row is None else (_Telling(on_row),),
                )
            state, rows, ended = done.state, done.rows, done.reason
        else:
            done_apart = train.pipelined(
                program,
                key,
                steps,
                placement=placement(real, devices),
                hyper=experiment.hyper,
                executor=real.executor,
                period=period,
                on_row=on_row,
                timeline=SPANS,
                restarts=restarts,
            )
            state, rows, ended = done_apart.state, done_apart.rows, "done"
            timeline = tuple(done_apart.timeline)
    seconds, spread = iteration_seconds(rows, program.schedule)
    return Ran(
        mapping=mapping,
        state=state,
        rows=rows,
        ended=ended,
        seconds=seconds,
        spread=spread,
        simulated=bool(absent),
        readings=meter.readings,
        unreadable=meter.unreadable,
        timeline=_from_zero(timeline),
    )


def check(experiment: Experiment, mapping: Mapping, devices: Table[str, Device]) -> None:
    """Raise ValueError, with role, device and reason, if a mapping does not fit the devices."""
    sizes, schedule = workload_of(experiment), experiment.program.schedule
    for role, names in (
        ("actor", (mapping.actor,)),
        ("replay_manager", (mapping.replay_manager,)),
        ("data_storage", (mapping.data_storage,)),
        ("learner", mapping.learner),
    ):
        for name in names:
            one_of(role, name, devices)
            why = devices[name].refuses(role, sizes)
            if why is not None:
                raise ValueError(f"{role} cannot be {name}: {why}")
    if mapping.learner not in learners(list(mapping.learner), devices, sizes.batch_size):
        raise ValueError(
            "learner must be one device, or all accelerators of a kind whose number divides "
            f"batch_size, {sizes.batch_size}, got {'+'.join(mapping.learner)}"
        )
    if mapping.executor == "asynchronous" and not (schedule.policy_lag and schedule.priority_lag):
        raise ValueError(
            "executor must not be asynchronous where the schedule allows for no staleness, got "
            f"policy_lag={schedule.policy_lag}, priority_lag={schedule.priority_lag}"
        )
    if mapping.executor == "fused" and not in_one_place(mapping, devices):
        raise ValueError(
            f"mapping must have one device of JAX for the executor fused, got "
            f"{', '.join(mapping.devices)}"
        )


def iteration_seconds(
    rows: Sequence[Table[str, Json]], schedule: train.Schedule
) -> tuple[float, float]:
    """Return seconds of an iteration that learns: median and interquartile range over rows.

    The first row with updates is left out, because it includes compilation.
    """
    learning = [row for row in rows if row["updates"] > 0][1:]
    each = [
        (after["seconds"] - before["seconds"]) * schedule.steps / (after["steps"] - before["steps"])
        for before, after in itertools.pairwise(learning)
    ]
    if not each:
        return float("nan"), float("nan")
    low, median, high = np.percentile(each, [25, 50, 75])
    return float(median), float(high - low)


@dataclasses.dataclass(frozen=True)
class _Telling:
    """Logger that passes rows to a function."""

    log: Callable[[Table[str, Json]], None]

    def begin(self, rows: Sequence[Table[str, Json]] | None) -> None:
        """Do nothing: there are no earlier rows."""

    def close(self) -> None:
        """Do nothing: no resource is held."""


def _from_zero(timeline: tuple[WorkerSpan, ...]) -> tuple[WorkerSpan, ...]:
    first = min((span.start for span in timeline), default=0.0)
    return tuple(span._replace(start=span.start - first, end=span.end - first) for span in timeline)
