"""Aggregate metrics over runs and tasks, for normalised scores.

Scores are arrays [R, M] of R runs in each of M tasks, normalised so that tasks compare, such as by
human scores. `bootstrap` gives their intervals:

    bootstrap([scores[:, m] for m in range(M)], lambda *tasks: median(np.stack(tasks, -1)))

Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice",
NeurIPS 2021, section 4.
"""

import numpy as np

from accel_rl.plot.learning import interquartile_mean
from accel_rl.types import ArrayLike


def mean(scores: ArrayLike) -> np.ndarray:
    """Return the mean over tasks of the mean over runs.

    Args:
      scores: [..., R, M].

    Returns:
      [...] float64, as of the other metrics.
    """
    return np.asarray(_scores(scores).mean(axis=(-2, -1)))


def median(scores: ArrayLike) -> np.ndarray:
    """Return the median over tasks of the mean over runs; of scores [..., R, M]."""
    return np.asarray(np.median(_scores(scores).mean(axis=-2), axis=-1))


def pooled_interquartile_mean(scores: ArrayLike) -> np.ndarray:
    """Return the inter-quartile mean over all runs of all tasks; of scores [..., R, M]."""
    array = _scores(scores)
    return interquartile_mean(array.reshape(*array.shape[:-2], -1), axis=-1)


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> np.ndarray:
    """Return by how much runs fall short of a target score on average.

    Args:
      scores: [..., R, M].
      target: score beyond which improvements do not count.
    """
    return np.asarray(target - np.minimum(_scores(scores), target).mean(axis=(-2, -1)))


def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> np.ndarray:
    """Return the probability that a run of one method beats one of another in a random task.

    Ties count half, as in the Mann-Whitney U statistic.

    Args:
      scores: [..., R, M].
      others: [..., R', M], of the other method.
    """
    first, second = _scores(scores)[..., :, None, :], _scores(others)[..., None, :, :]
    wins = (first > second) + 0.5 * (first == second)
    return np.asarray(wins.mean(axis=(-3, -2, -1)))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> np.ndarray:
    """Return the share of runs over all tasks whose score is above each threshold.

    Args:
      scores: [R, M].
      thresholds: [T].

    Returns:
      [T] float64.
    """
    return np.mean(_scores(scores)[..., None] > np.asarray(thresholds), axis=(0, 1))


def _scores(scores: ArrayLike) -> np.ndarray:
    array = np.asarray(scores, np.float64)
    if array.ndim < 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"scores must be finite, [runs, tasks], got shape {array.shape}")
    return array
