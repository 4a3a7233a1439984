"""Evaluation of the policies in a training's checkpoint, by greedy episodes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import train
from accel_rl.experiment import folder, sweep, training
from accel_rl.experiment.assembly import Experiment
from accel_rl.experiment.configuration import Configuration
from accel_rl.experiment.hosted import HostSource
from accel_rl.experiment.trained import NoCheckpointError, load_run
from accel_rl.io.run_folder import RESULTS, kind_of
from accel_rl.io.values import Json
from accel_rl.train.compiled import finite
from accel_rl.types import Array, ArrayLike, PyTree


def score(
    directory: Path,
    which: Literal["last", "best"] = "last",
    episodes: int | None = None,
    seed: int = 0,
) -> dict[str, Json]:
    """Evaluate each policy of a training, or of all groups of a sweep.

    Args:
      directory: of a training or a sweep.
      which: "last", the newest checkpoint; "best", the one whose evaluation had the highest mean
        over the seeds.
      episodes: for each policy; as configured if None.
      seed: of the episodes.

    Returns:
      Scores of each combination of settings, with its checkpoint and steps. The top level repeats
      values that all combinations share, with None where they differ. "unfinished" lists trainings
      that have not ended, and those of a sweep without scores because they lack the checkpoint.
    """
    found, unfinished = [], []
    if kind_of(directory) == "sweep":
        groups = [
            (directory / group.name, group.settings, group.configuration)
            for group in sweep.read(directory)
        ]
    else:
        groups = [(directory, {}, folder.read(directory))]
    for inner, settings, wanted in groups:
        figures = _training(inner, which, episodes, seed) if kind_of(inner) == "training" else None
        unfinished += _unfinished(inner, settings, wanted, scored=figures is not None)
        if figures is not None:
            for each in figures["trainings"]:
                each["settings"] = {**settings, **each["settings"]}
            found.append(figures)
    if not found:
        raise ValueError(f"{directory} has no checkpoint yet: accel-rl resume {directory}")
    return {
        **training.in_common(found),
        "trainings": [each for one in found for each in one["trainings"]],
        "unfinished": unfinished,
    }


def _unfinished(
    directory: Path, settings: Mapping[str, Json], wanted: Configuration, *, scored: bool
) -> list[dict[str, Json]]:
    """Describe a training that has not ended or has no scores; return an empty list otherwise.

    The folder is absent if the sweep has not reached it; `wanted` has more steps than the
    training's own configuration if the sweep was resumed with more.
    """
    ended = (directory / RESULTS).is_file()
    if ended and scored and folder.read(directory).training.steps >= wanted.training.steps:
        return []
    done = max(folder.checkpoints(directory, wanted).steps(), default=0)
    common = {"run": str(directory), "settings": dict(settings)}
    return [{**common, "steps": done, "of": wanted.training.steps, "scored": scored}]


def _training(
    directory: Path, which: Literal["last", "best"], episodes: int | None, seed: int
) -> dict[str, Json] | None:
    """Evaluate a training; return None if it lacks the checkpoint."""
    try:
        run = load_run(directory, which)
    except NoCheckpointError:
        return None
    assembly, state = run.experiment, run.state
    complete = assembly.configuration
    number = complete.evaluation.episodes if episodes is None else episodes
    shape = len(complete.combinations()), complete.training.seeds
    if assembly.host is None:
        found: ArrayLike = _means(assembly, state.agent, number, seed)
    else:
        found = _host_means(assembly, assembly.host, state.agent, number, seed)
    played = {"checkpoint": str(run.checkpoint), "steps": run.steps}
    return {
        "environment": complete.environment.name,
        "agent": complete.agent.name,
        **played,
        "seeds": complete.training.seeds,
        "episodes": number,
        "trainings": [
            {"settings": settings, **played, **training.figures(each)}
            for settings, each in zip(
                complete.combinations(), np.asarray(found).reshape(shape), strict=True
            )
        ],
    }


def _means(assembly: Experiment, state: PyTree, episodes: int, seed: int) -> Array:
    """Return the mean return of each training's episodes, all in one compiled call."""
    complete, agent = assembly.configuration, assembly.program.agent
    play = train.evaluator(assembly.env, agent, episodes, complete.evaluation.max_steps)

    def mean(state: PyTree, key: Array) -> Array:
        played = jnp.mean(play(agent.policy(state), key))
        return jnp.where(finite(state), played, jnp.nan)  # a policy of NaNs still acts

    key = jax.random.key(np.uint32(seed))
    if assembly.key.ndim == 0:
        return jax.jit(mean)(state, key)
    keys = jax.random.split(key, assembly.trainings)
    means: Array = jax.jit(train.over_seeds(mean, **training.seeds(complete)))(state, keys)
    return means


def _host_means(
    assembly: Experiment, host: HostSource, state: PyTree, episodes: int, seed: int
) -> np.ndarray:
    """Return the mean return of each training's episodes on the host, of the same seed."""
    agent, each = assembly.program.agent, [state]
    if assembly.key.ndim:
        each = [jax.tree.map(lambda leaf, n=n: leaf[n], state) for n in range(assembly.trainings)]
    with host.open_scored(episodes) as env:
        play = train.host_evaluator(
            env, agent, episodes, assembly.configuration.evaluation.max_steps
        )
        return np.array(
            [
                play(agent.policy(one), seed).mean(dtype=np.float64) if finite(one) else np.nan
                for one in each
            ]
        )
