"""A training as a host loop over compiled chunks: watched, evaluated, stopped and resumed."""

import contextlib
import pathlib
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from accel_rl.arguments import instance, whole
from accel_rl.io import Checkpoint, Checkpoints, Logger
from accel_rl.io.loggers import Row
from accel_rl.train.compiled import Evaluation, compiled
from accel_rl.train.divergence import divergence
from accel_rl.train.interruption import deferred
from accel_rl.train.origin import check_origin, origin
from accel_rl.train.program import Program
from accel_rl.train.rows import row
from accel_rl.train.schedule import default_period, segments
from accel_rl.train.seeds import check_strategy
from accel_rl.train.state import TrainState
from accel_rl.train.stopping import Rule
from accel_rl.types import Array


class Outcome(NamedTuple):
    """What a training ended with."""

    state: TrainState  # with a leading axis where there are seeds
    rows: list[Row]  # one for each chunk, from the first
    reason: str  # "done", "stopped: ...", "interrupted" or "diverged: ..."
    checkpoint: pathlib.Path | None  # the last


def chunked(
    program: Program,
    key: Array,
    steps: int,
    *,
    period: int | None = None,
    hyper: Mapping[str, Any] | None = None,
    seeds: str | Mapping[str, Any] = "auto",
    evaluation: Evaluation | None = None,
    stop: Rule | None = None,
    loggers: Sequence[Logger] = (),
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    stop_diverged: bool = True,
) -> Outcome:
    """Trains as `whole` does, in chunks between which the host has its say.

    After each chunk there is a row for the loggers, perhaps an evaluation and perhaps a checkpoint.
    Ctrl-C and SIGTERM end the training after the present chunk, with a checkpoint; a second one
    ends it at once. A training that was stopped, or killed at any moment, and is resumed ends with
    the same bits as one that was not, on the same versions and devices.

    Args:
      program: what to run; its memory must be part of it.
      key: random key of a training, or [seeds] of them, for as many at once.
      steps: environment steps of each training.
      period: environment steps in a chunk; a hundredth of `steps` if None.
      hyper: arguments of `program.init`; where there are several keys, leaves are scalars or
        [seeds].
      seeds: how trainings share the devices: a strategy of `over_seeds`, or its arguments.
      evaluation: at the first end of a chunk after each `every` steps, and after the last chunk,
        rows have the mean return of greedy episodes as `evaluation`; elsewhere it is NaN.
      stop: a function of all rows so far that says why to stop, or None; asked after each chunk.
        `stop_at("evaluation", 475)` makes one.
      loggers: told of each row. They are begun here, and closed.
      checkpoints: where they go, and when; None: nowhere.
      resume: go on from the newest whole checkpoint, or start where there is none. With more steps
        than before, a last chunk that was cut short is completed first.
      stop_diverged: whether the training ends where a seed diverges. If not, the others go on, as
        in a sweep, and the evaluation of those whose agent's state is not finite is NaN.

    Returns:
      The last state, rows, why it ended, and the last checkpoint. A training diverges where a
      metric of the agent, or its state, is not finite for any seed: its checkpoint is then one from
      before.

    Raises:
      ValueError: if a number is out of range; if a checkpoint is of another training or program.
      TypeError: if an argument is of another type, or the memory is a replay port.
      FileExistsError: if the training starts where there are checkpoints, or a log, of another.
      BlockingIOError: if another process writes checkpoints there.
      DamagedError: if no checkpoint is whole.
    """
    if resume and checkpoints is None:
        raise ValueError("resume needs checkpoints, got None")
    instance("program", program, Program, "train.make makes one")
    program.require_replay()
    whole("steps", steps, 1)
    period = default_period(steps) if period is None else period
    left = segments(program.schedule, steps, period)
    arguments = {"strategy": seeds} if isinstance(seeds, str) else dict(seeds)
    check_strategy(str(arguments.get("strategy", "auto")))
    for name, value, kind in (
        ("evaluation", evaluation, Evaluation),
        ("checkpoints", checkpoints, Checkpoints),
    ):
        if value is not None:
            instance(name, value, kind)
    instance("loggers", loggers, Sequence)
    parts = compiled(program, key, hyper or {}, arguments, evaluation)
    about = origin(program, key, period, hyper or {}, arguments, evaluation)
    with contextlib.ExitStack() as stack:
        found = None
        if checkpoints is not None:
            stack.enter_context(checkpoints.writing())
            found = _found(checkpoints, resume)
        if found is None:
            state, rows, last = parts.init(), [], None
        else:
            check_origin(found.about, about)
            left = _left(found, program, left)
            state, rows, last = found.state(parts.template), found.rows, found.path
        for logger in loggers:
            logger.begin(rows if resume else None)
            stack.callback(logger.close)
        interrupted = stack.enter_context(deferred())
        began = time.perf_counter() - (rows[-1]["seconds"] if rows else 0)
        reason = _reason(rows, left, stop)
        while reason is None:
            (iterations, learning), *left = left
            state, measured, finite = parts.segment(state, iterations, learning)
            metrics = {name: np.array(value) for name, value in measured.items()}
            sound = np.array(finite)
            diverged = divergence(metrics, sound, state.agent) if stop_diverged else None
            if evaluation is not None:
                asked = not diverged and (not left or _due(rows, metrics, evaluation))
                played = np.array(parts.evaluate(state)) if asked else np.float32(np.nan)
                metrics["evaluation"] = np.where(sound, played, np.float32(np.nan))
            rows.append(row(metrics, time.perf_counter() - began))
            for logger in loggers:
                logger.log(rows[-1])
            if diverged:
                kept = f"the last good checkpoint is {last}" if last else "there is no checkpoint"
                reason = f"diverged: {diverged}; {kept}"
                break
            reason = _reason(rows, left, stop) or ("interrupted" if interrupted() else None)
            if checkpoints is not None and (reason or checkpoints.due(rows)):
                last = _save(checkpoints, state, about, rows, last)
        return Outcome(state, rows, reason, last)


def _found(checkpoints: Checkpoints, resume: bool) -> Checkpoint | None:
    if resume:
        return checkpoints.newest()
    if checkpoints.steps():
        raise FileExistsError(
            f"{checkpoints.folder} holds checkpoints already: resume the training, or take another "
            "folder"
        )
    return None


def _left(
    found: Checkpoint, program: Program, plan: Sequence[tuple[int, bool]]
) -> list[tuple[int, bool]]:
    """What of the plan comes after a checkpoint; the first chunk is what is left of its own."""
    steps = program.schedule.steps
    total, done = sum(iterations for iterations, _ in plan), found.step // steps
    if done > total:
        raise ValueError(
            f"steps must be at least {found.step}, where the checkpoint is, got {total * steps}"
        )
    left = []
    for iterations, learning in plan:
        if iterations > done:
            left.append((iterations - done, learning))
        done = max(done - iterations, 0)
    return left


def _reason(rows: Sequence[Row], left: Sequence[Any], stop: Rule | None) -> str | None:
    if rows and stop is not None and (why := stop(rows)):
        return f"stopped: {why}"
    return None if left else "done"


def _due(rows: Sequence[Row], metrics: Mapping[str, np.ndarray], evaluation: Evaluation) -> bool:
    """Whether the chunk that follows the rows ends with an evaluation, if it is not the last."""
    before, after = rows[-1]["steps"] if rows else 0, metrics["steps"].flat[0]
    return after // evaluation.every > before // evaluation.every


def _save(
    checkpoints: Checkpoints,
    state: TrainState,
    about: Mapping[str, Any],
    rows: Sequence[Row],
    last: pathlib.Path | None,
) -> pathlib.Path | None:
    try:
        return checkpoints.save(state, about, rows)
    except OSError as error:
        warnings.warn(
            f"no checkpoint at step {rows[-1]['steps']}: {error}; the last is "
            f"{last or 'still to come'}",
            stacklevel=3,
        )
        return last
