"""Greedy episodes of the policies in a training's checkpoint."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import train
from accel_rl.cli.training import execute, folder, sweeping
from accel_rl.cli.training.assemble import assemble
from accel_rl.io import Checkpoint
from accel_rl.train.compiled import finite
from accel_rl.types import Array

CHECKPOINTS = ("last", "best")


def score(
    directory: Path, which: str = "last", episodes: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """Plays episodes with each policy of a training, or of all groups of a sweep.

    Args:
      directory: of a training or a sweep.
      which: "last", the newest checkpoint; "best", the one whose evaluation had the highest mean
        over the seeds.
      episodes: with each policy; as configured if None.
      seed: of the episodes.

    Returns:
      Figures for each combination of settings.

    Raises:
      ValueError: if there is no such training or checkpoint, or it is damaged.
    """
    if not sweeping.is_sweep(directory):
        return _training(directory, which, episodes, seed)
    found = []
    for group in sweeping.read(directory):
        figures = _training(directory / group.name, which, episodes, seed)
        for each in figures["trainings"]:
            each["settings"] = {**group.settings, **each["settings"]}
        found.append(figures)
    return {**found[0], "trainings": [each for one in found for each in one["trainings"]]}


def _training(directory: Path, which: str, episodes: int | None, seed: int) -> dict[str, Any]:
    complete = folder.read(directory)
    assembly = assemble(complete)
    checkpoint = _checkpoint(directory, assembly.configuration, which)
    state = train.restore(assembly.program, checkpoint)
    number = complete.evaluation.episodes if episodes is None else episodes
    agent = assembly.program.agent
    play = train.evaluator(assembly.scored, agent, number, complete.evaluation.max_steps)

    def mean(state: Any, key: Array) -> Array:
        played = jnp.mean(play(agent.policy(state), key))
        return jnp.where(finite(state), played, jnp.nan)  # NaNs choose actions too

    key = jax.random.key(np.uint32(seed))
    if assembly.key.ndim == 0:
        means = jax.jit(mean)(state.agent, key)
    else:
        keys = jax.random.split(key, assembly.trainings)
        means = jax.jit(train.over_seeds(mean, **execute.seeds(complete)))(state.agent, keys)
    shape = len(complete.combinations()), complete.training.seeds
    return {
        "environment": complete.environment.name,
        "agent": complete.agent.name,
        "checkpoint": str(checkpoint.path),
        "steps": checkpoint.step,
        "seeds": complete.training.seeds,
        "episodes": number,
        "trainings": [
            {"settings": settings, **execute.figures(each)}
            for settings, each in zip(
                complete.combinations(), np.asarray(means).reshape(shape), strict=True
            )
        ],
    }


def _checkpoint(directory: Path, complete: Any, which: str) -> Checkpoint:
    checkpoints = folder.checkpoints(directory, complete)
    found = checkpoints.newest() if which == "last" else checkpoints.highest()
    if found is None:
        raise ValueError(f"{directory} has no checkpoint yet: accel-rl resume {directory}")
    return found
