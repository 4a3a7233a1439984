"""The fused executor: a whole training as one pure function, or in segments on the host.

`run` logs, evaluates and saves checkpoints between its segments.
"""

import contextlib
import functools
import pathlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.envs import HostEnvironment
from accel_rl.io import Checkpoint, Checkpoints, Logger
from accel_rl.io.loggers import Row
from accel_rl.io.values import Json
from accel_rl.train.checkpoint_metadata import check_metadata, checkpoint_metadata
from accel_rl.train.compiled import compile_program, number_of_seeds
from accel_rl.train.evaluate import Evaluation, check_evaluated
from accel_rl.train.metrics import divergence, row
from accel_rl.train.pipeline.context import metric_names
from accel_rl.train.pipeline.segments import EXECUTORS, with_executor
from accel_rl.train.program import Program
from accel_rl.train.schedule import default_period, segments
from accel_rl.train.state import TrainState
from accel_rl.train.stopping import Rule, deferred_signals
from accel_rl.train.value_limit import warn_of_excess
from accel_rl.types import Array, PyTree


class FusedResult(NamedTuple):
    """Final state and metrics of a fused training; a pytree."""

    state: TrainState
    metrics: dict[str, Array]  # leaves [N], one entry for each segment


def fused(program: Program, steps: int, *, period: int | None = None) -> Callable[..., FusedResult]:
    """Make a pure function from a PRNG key and hyper-parameters to the trained state.

    Args:
      program: its buffer must be a `Replay`.
      steps: environment steps, over all environments.
      period: environment steps between two entries of the metrics; `steps` / 100 if None.

    Returns:
      run(key, **hyper-parameters of `Program.init`) -> FusedResult.
    """
    program.require_replay()
    plan = segments(program.schedule, steps, period)

    def train(key: Array, **hyperparameters: PyTree) -> FusedResult:
        state = program.init(key, **hyperparameters)
        metrics = []
        for learning in (False, True):
            lengths = np.array([n for n, learns in plan if learns == learning], np.int32)
            if lengths.size:
                segment = functools.partial(program.segment, learning=learning)
                state, measured = jax.lax.scan(segment, state, lengths)
                metrics.append(measured)
        return FusedResult(state, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *metrics))

    return train


class RunResult(NamedTuple):
    """Final state, logged rows and the reason why training ended."""

    state: TrainState  # with a leading axis where there are seeds
    rows: list[Row]  # one for each segment, from the first
    reason: str  # "done", "stopped: ...", "interrupted" or "diverged: ..."
    checkpoint: pathlib.Path | None  # the last


def run(
    program: Program,
    key: Array,
    steps: int,
    *,
    period: int | None = None,
    hyper: Mapping[str, PyTree] | None = None,
    seeds: str | Mapping[str, Any] = "auto",
    evaluation: Evaluation | None = None,
    stop: Rule | None = None,
    loggers: Sequence[Logger] = (),
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    stop_diverged: bool = True,
    executor: str = "fused",
    env: HostEnvironment | None = None,
    scored: HostEnvironment | None = None,
) -> RunResult:
    """Train as `fused` does, in segments, with logging, evaluation and checkpoints between them.

    Ctrl-C and SIGTERM end the training after the present segment, with a checkpoint; a second
    signal ends it at once. A training that was stopped, or killed at any moment, and is resumed is
    bit-identical to an uninterrupted one, on the same versions and devices. Host environments,
    whose states are not saved, begin new episodes instead, and the asynchronous executor depends on
    timing.

    Args:
      program: its buffer must be a `Replay`.
      key: PRNG key, or [seeds] of them to train as many at once.
      steps: environment steps for each seed.
      period: environment steps in a segment; `steps` / 100 if None.
      hyper: arguments of `program.init`; with several keys, leaves are scalars or [seeds].
      seeds: how seeds share the devices: a strategy of `over_seeds`, or its arguments.
      evaluation: at the first end of a segment after each `every` steps, and at the end, rows have
        the mean return of greedy episodes as `evaluation`; elsewhere it is NaN.
      stop: a function of all rows so far that returns a reason to stop, or None; called after each
        segment. `stop_at("evaluation", 475)` makes one.
      loggers: receive each row. They are begun and closed here.
      checkpoints: folder and frequency of checkpoints; None for no checkpoints.
      resume: continue from the newest complete checkpoint, or start where there is none. With more
        steps than before, a last segment that was cut short is completed first.
      stop_diverged: end the training where a seed diverges. If False, the other seeds continue, as
        in a sweep, and the evaluation of a seed whose state is not finite is NaN.
      executor: "fused", or for a single key "deterministic" or "asynchronous", see `pipelined`.
      env: host environments to train in, `num_envs` for each key; the program is made with
        `env.environment`. All but their steps is compiled as one call for "fused", too.
      scored: host environments to evaluate in, any number of them; required with `env` and
        `evaluation`. Neither is closed.

    Returns:
      The final state, rows, reason, and the last checkpoint. A training diverges where a metric of
      the agent, or its state, is not finite for any seed; its last checkpoint is then an earlier
      one.

    Raises:
      ValueError: if a number is out of range; if a checkpoint is of another training or program.
      TypeError: if the buffer is a replay port.
      FileExistsError: if the training starts where there are checkpoints, or a log, of another.
      BlockingIOError: if another process writes checkpoints there.
      DamagedError: if no checkpoint is complete.
    """
    if resume and checkpoints is None:
        raise ValueError("resume needs checkpoints, got None")
    program.require_replay()
    one_of("executor", executor, EXECUTORS)
    if number_of_seeds(key) is not None and executor != "fused":
        raise ValueError(
            f"key must be a single one for executors other than fused, got {key.shape} of them"
        )
    if evaluation is not None:
        check_evaluated(program.env)
    if env is not None and scored is None and evaluation is not None:
        raise ValueError("scored must be host environments, for evaluation, got None")
    period = default_period(steps) if period is None else period
    plan = segments(program.schedule, steps, period)
    arguments = {"strategy": seeds} if isinstance(seeds, str) else dict(seeds)
    compiled = compile_program(program, key, hyper or {}, arguments, evaluation)
    if executor != "fused" or env is not None:
        settings = evaluation or Evaluation()
        compiled = with_executor(compiled, program, key, arguments, executor, env, scored, settings)
    learned = metric_names(program)
    about = checkpoint_metadata(program, key, period, hyper or {}, arguments, evaluation)
    with contextlib.ExitStack() as stack:
        found = None
        if checkpoints is not None:
            stack.enter_context(checkpoints.writing())
            found = _found(checkpoints, resume)
        if found is None:
            state, rows, last = compiled.init(), [], None
        else:
            check_metadata(found.about, about)
            plan = _remaining(found, program, plan)
            state, rows, last = found.state(compiled.template), found.rows, found.path
        for logger in loggers:
            logger.begin(rows if resume else None)
            stack.callback(logger.close)
        interrupted = stack.enter_context(deferred_signals())
        began = time.perf_counter() - (rows[-1]["seconds"] if rows else 0)
        reason, warned = _reason(rows, plan, stop), False
        while reason is None:
            (iterations, learning), *plan = plan
            state, measured, finite = compiled.segment(state, iterations, learning)
            metrics = {name: np.array(value) for name, value in measured.items()}
            healthy = np.array(finite)
            warned = warned or warn_of_excess(metrics)
            diverged = divergence(metrics, learned, healthy, state.agent) if stop_diverged else None
            if evaluation is not None:
                due = not diverged and (not plan or _due(rows, metrics, evaluation))
                returns = np.array(compiled.evaluate(state)) if due else np.float32(np.nan)
                metrics["evaluation"] = np.where(healthy, returns, np.float32(np.nan))
            rows.append(row(metrics, time.perf_counter() - began))
            for logger in loggers:
                logger.log(rows[-1])
            if diverged:
                kept = f"the last good checkpoint is {last}" if last else "there is no checkpoint"
                reason = f"diverged: {diverged}; {kept}"
                break
            reason = _reason(rows, plan, stop) or ("interrupted" if interrupted() else None)
            if checkpoints is not None and (reason or checkpoints.due(rows)):
                last = _save(checkpoints, state, about, rows, last)
        return RunResult(state, rows, reason, last)


def _found(checkpoints: Checkpoints, resume: bool) -> Checkpoint | None:
    if resume:
        return checkpoints.newest()
    if checkpoints.steps():
        raise FileExistsError(
            f"{checkpoints.folder} holds checkpoints already: resume the training, or take another "
            "folder"
        )
    return None


def _remaining(
    found: Checkpoint, program: Program, plan: Sequence[tuple[int, bool]]
) -> list[tuple[int, bool]]:
    """Return the plan from a checkpoint on; the first segment is completed."""
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


def _reason(rows: Sequence[Row], plan: Sequence[PyTree], stop: Rule | None) -> str | None:
    if rows and stop is not None and (why := stop(rows)):
        return f"stopped: {why}"
    return None if plan else "done"


def _due(rows: Sequence[Row], metrics: Mapping[str, np.ndarray], evaluation: Evaluation) -> bool:
    """Return whether the segment after the rows ends with an evaluation, unless it is the last."""
    before, after = rows[-1]["steps"] if rows else 0, metrics["steps"].flat[0]
    return after // evaluation.every > before // evaluation.every


def _save(
    checkpoints: Checkpoints,
    state: TrainState,
    about: Mapping[str, Json],
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
