"""Trainings of experiments in folders, and their results."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel_rl import train
from accel_rl.experiment import folder
from accel_rl.experiment.assembly import Experiment
from accel_rl.experiment.configuration import Configuration
from accel_rl.io.loggers import Row
from accel_rl.io.run_folder import RESULTS, made_with, write_json
from accel_rl.io.values import Json
from accel_rl.train import RunResult
from accel_rl.types import ArrayLike


class FolderError(ValueError):
    """Error for a folder that holds another training, or a damaged one."""


def check(experiment: Experiment) -> None:
    """Check all arguments of a training before anything is written."""
    complete = experiment.configuration
    train.segments(experiment.program.schedule, complete.training.steps, complete.training.period)
    evaluation(complete)
    seeds(complete)
    folder.checkpoints(Path(), complete)
    folder.loggers(Path(), complete, bar=False)


def evaluation(complete: Configuration) -> train.Evaluation:
    """Return the evaluation settings for `train.run`."""
    settings = complete.evaluation
    return train.Evaluation(settings.episodes, settings.every, settings.max_steps)


def seeds(complete: Configuration) -> dict[str, Json]:
    """Return arguments of `train.over_seeds`, checked."""
    training = complete.training
    arguments: dict[str, Json] = {"strategy": training.strategy}
    if training.seed_batch is not None:
        arguments["seed_batch"] = training.seed_batch
    train.over_seeds(lambda key: key, **arguments)  # only checks the arguments
    return arguments


def run(
    directory: Path, experiment: Experiment, command: str, *, resume: bool, bar: bool
) -> tuple[RunResult, dict[str, Json]]:
    """Train, and write metrics, checkpoints and results into a folder.

    Args:
      directory: the folder; created if absent.
      experiment: what to train.
      command: the command line, for records.
      resume: continue from the newest checkpoint in the folder.
      bar: show a progress bar on stderr.

    Returns:
      The result of `train.run`, and the content of `results.json`, which is written unless the
      training was interrupted.

    Raises:
      FolderError: if the folder holds another training, or a damaged one.
      OSError: if a file cannot be written.
    """
    complete = experiment.configuration
    record = folder.FolderLogger(directory, complete, command)
    began = time.perf_counter()
    try:
        outcome = train_with(
            experiment,
            loggers=[record, *folder.loggers(directory, complete, bar)],
            checkpoints=folder.checkpoints(directory, complete),
            resume=resume,
        )
    except ValueError as error:
        if record.started:  # past all checks of user input: a bug, which keeps its traceback
            raise
        raise FolderError(str(error)) from error
    results = {
        **summary(complete, outcome.rows),
        "reason": outcome.reason,
        "command": command,
        "wall_seconds": round(time.perf_counter() - began, 3),
        **made_with(),
    }
    if outcome.reason != "interrupted":
        write_json(directory / RESULTS, results)
    return outcome, results


def train_with(experiment: Experiment, **files: Any) -> RunResult:
    """Train with loggers and checkpoints of `train.run`, if any."""
    complete = experiment.configuration
    settings = complete.evaluation
    rules: list[Callable[[Sequence[Row]], str | None]] = []
    if settings.stop_at is not None:
        rules.append(train.stop_at("evaluation", settings.stop_at, every_seed=True))
    if settings.stop_excess is not None:
        rules.append(train.stop_excess(settings.stop_excess))

    with contextlib.ExitStack() as stack:
        host: dict[str, Any] = {}
        if experiment.host is not None:
            opened = experiment.host.open(complete.schedule.num_envs * experiment.trainings)
            scored = experiment.host.open_scored(complete.evaluation.episodes)
            host = {"env": stack.enter_context(opened), "scored": stack.enter_context(scored)}
        return train.run(
            experiment.program,
            experiment.key,
            complete.training.steps,
            period=complete.training.period,
            hyper=experiment.hyper,
            seeds=seeds(complete),
            evaluation=evaluation(complete),
            stop=train.first_of(*rules),
            stop_diverged=not complete.sweep,  # one combination must not end the others
            executor=complete.training.executor,
            **host,
            **files,
        )


def summary(complete: Configuration, rows: list[Row]) -> dict[str, Json]:
    """Summarise a training by its last row."""
    last = rows[-1]
    return {
        "environment": complete.environment.name,
        "agent": complete.agent.name,
        "sampler": complete.replay.sampler,
        "steps": last["steps"],
        "seeds": complete.training.seeds,
        "episodes": complete.evaluation.episodes,
        "trainings": [
            {"settings": settings, **figures(scores)}
            for settings, scores in zip(
                complete.combinations(), per_combination(complete, last, "evaluation"), strict=True
            )
        ],
        "training_seconds": round(last["seconds"], 3),
    }


def figures(scores: ArrayLike) -> dict[str, Json]:
    """Compute statistics of the seeds' scores [seeds]; None if any score is not finite."""
    from accel_rl.plot import interquartile_mean  # late: it imports matplotlib

    array = np.asarray(scores, np.float64)
    known = bool(np.isfinite(array).all())
    found = {
        "mean": array.mean(),
        "interquartile_mean": interquartile_mean(array) if known else np.nan,
        "lowest": array.min(),
        "highest": array.max(),
    }
    shown = {name: float(each) if known else None for name, each in found.items()}
    return {**shown, "per_seed": [float(each) if np.isfinite(each) else None for each in array]}


def per_combination(complete: Configuration, row: Row, name: str) -> np.ndarray:
    """Return a metric of a row as [combinations, seeds]; NaN where the row has null."""
    found = row["per_seed"][name] if "per_seed" in row else [row[name]]
    array = np.array([np.nan if each is None else each for each in found], np.float64)
    return array.reshape(len(complete.combinations()), complete.training.seeds)


def in_common(found: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Return the values that all tables share; None for a name whose values differ."""
    first = found[0]
    return {
        name: value if all(each[name] == value for each in found) else None
        for name, value in first.items()
    }
