"""Running a mapping: `train`'s executors take it, and what they took stands beside the model."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table
from typing import Any

import jax
import numpy as np

from accel_rl import train
from accel_rl.arguments import instance, whole
from accel_rl.compose import spec as specs
from accel_rl.compose.candidates import learners
from accel_rl.compose.devices import Device, find
from accel_rl.compose.energy import Meter, Reading, Unreadable
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.placing import placement, program_for, stand_ins
from accel_rl.compose.spec import Spec
from accel_rl.train import TrainState
from accel_rl.train.pipeline.workers import WorkerSpan
from accel_rl.types import Array

SPANS = 400  # the last of a run that are kept


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a run of a mapping took."""

    mapping: Mapping
    state: TrainState
    rows: Sequence[Table[str, Any]]  # of metrics, as the executor gives them
    ended: str  # "done", or why it ended before: "interrupted", "diverged: ..."
    seconds: float  # of an iteration that learns, the median over rows; nan of less than two
    spread: float  # between the quartiles
    simulated: bool  # whether devices that cannot run were stood in for: no time is then theirs
    readings: tuple[Reading, ...]  # joules of the whole run, where a meter can be read
    unreadable: tuple[Unreadable, ...]  # and why, where none can
    timeline: tuple[WorkerSpan, ...] = ()  # the last steps, in seconds


def run(
    spec: Spec,
    mapping: Mapping,
    key: Array,
    steps: int,
    *,
    devices: Table[str, Device] | None = None,
    simulate: bool = False,
    period: int | None = None,
    on_row: Callable[[Table[str, Any]], None] | None = None,
    restarts: int = 0,
) -> Ran:
    """Trains as a mapping says.

    Args:
      spec: what to train.
      mapping: of a plan, or one's own.
      key: random key of the training.
      steps: environment steps.
      devices: by name; those of `find(spec.devices)` if None.
      simulate: devices that cannot run are stood in for by the actor's: what is computed is what
        they would compute, the time is not theirs.
      period: environment steps between rows; if None a hundredth of `steps`, of the fused program,
        whose iterations may take microseconds, a twentieth.
      on_row: called with each row.
      restarts: of failing actors, with the asynchronous executor; see `train.pipelined`.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if a number is out of range; if the mapping names a device that is not there, that
        does not take its role, or that cannot run and is not to be simulated; if actors of another
        executor are to restart.
    """
    instance("spec", spec, specs.Spec)
    instance("mapping", mapping, Mapping)
    whole("steps", steps, 1)
    whole("restarts", restarts, 0)
    devices = find(spec.devices) if devices is None else devices
    check(spec, mapping, devices)
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
    program = program_for(spec, real, devices)
    given = specs.hyper(spec)
    timeline: tuple[WorkerSpan, ...] = ()
    with Meter() as meter:
        if real.executor == "fused":
            # In short rows the loop around them would be measured.
            period = -(-steps // 20) if period is None else period
            with jax.default_device(placement(real, devices).index()):
                done = train.run(
                    program,
                    key,
                    steps,
                    period=period,
                    hyper=given,
                    loggers=() if on_row is None else (_Telling(on_row),),
                )
            state, rows, ended = done.state, done.rows, done.reason
        else:
            done_apart = train.pipelined(
                program,
                key,
                steps,
                placement=placement(real, devices),
                hyper=given,
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


def check(spec: Spec, mapping: Mapping, devices: Table[str, Device]) -> None:
    """Raises ValueError if a mapping does not fit the devices; names role, device and reason."""
    workload = specs.workload(spec)
    for role, names in (
        ("actor", (mapping.actor,)),
        ("replay_manager", (mapping.replay_manager,)),
        ("data_storage", (mapping.data_storage,)),
        ("learner", mapping.learner),
    ):
        for name in names:
            if name not in devices:
                raise ValueError(f"{role} must be one of {', '.join(devices)}, got {name!r}")
            why = devices[name].refuses(role, workload)
            if why is not None:
                raise ValueError(f"{role} cannot be {name}: {why}")
    if spec.batch_size % len(mapping.learner):
        raise ValueError(
            f"batch_size must be a multiple of the {len(mapping.learner)} learners, got "
            f"{spec.batch_size}"
        )
    team = learners(list(dict.fromkeys(mapping.learner)), devices, spec.batch_size)
    if len(mapping.learner) > 1 and mapping.learner not in team:
        raise ValueError(
            "learner must be one device, or all accelerators of a kind, got "
            f"{'+'.join(mapping.learner)}"
        )
    if mapping.executor == "asynchronous" and not (spec.policy_lag and spec.priority_lag):
        raise ValueError(
            "executor must not be asynchronous where the spec allows for no staleness, got "
            f"policy_lag={spec.policy_lag}, priority_lag={spec.priority_lag}"
        )
    places = {getattr(devices[name], "jax_device", None) for name in mapping.devices}
    if mapping.executor == "fused" and (len(places) > 1 or None in places):
        raise ValueError(
            f"mapping must have one device of JAX for the executor fused, got "
            f"{', '.join(mapping.devices)}"
        )


def iteration_seconds(
    rows: Sequence[Table[str, Any]], schedule: train.Schedule
) -> tuple[float, float]:
    """Seconds of an iteration that learns, median and distance of quartiles over rows.

    The first row in which there is learning is left out, as what it calls is compiled in it.
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
    """A logger that hands rows on."""

    log: Callable[[Table[str, Any]], None]

    def begin(self, rows: Sequence[Table[str, Any]] | None) -> None:
        """Nothing was logged before."""

    def close(self) -> None:
        """Nothing is held."""


def _from_zero(timeline: tuple[WorkerSpan, ...]) -> tuple[WorkerSpan, ...]:
    first = min((span.start for span in timeline), default=0.0)
    return tuple(span._replace(start=span.start - first, end=span.end - first) for span in timeline)
