"""Learning curves from the metrics of trainings."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def curve(metrics: Mapping[str, Any], points: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Mean returns of the episodes that stopped in each of some stretches of a training.

    Where no episode stopped in a stretch, the mean of the stretch before holds; before the first
    one, that of the first.

    Args:
      metrics: of several trainings, leaves [seeds, rows]: steps, episode_return, and `episodes`
        that each return is the mean of; each counts as one if there is no such leaf.
      points: stretches, N; as many as rows if there are fewer.

    Returns:
      The step at which each ends [N], and the means [seeds, N] float64.

    Raises:
      ValueError: if a training finished no episode.
    """
    steps = np.asarray(metrics["steps"])[0]
    returns = np.asarray(metrics["episode_return"], np.float64)
    counts = np.asarray(metrics.get("episodes", np.ones_like(returns)), np.float64)
    counts = np.where(np.isfinite(returns), counts, 0)
    total = np.where(counts > 0, returns, 0) * counts
    parts = np.array_split(np.arange(steps.size), min(points, steps.size))
    starts = [part[0] for part in parts]
    number = np.add.reduceat(counts, starts, axis=1)
    if not (number.sum(1) > 0).all():
        raise ValueError("no episode stopped in a training, so that it has no curve")
    means = np.add.reduceat(total, starts, axis=1) / np.where(number > 0, number, 1)
    known = number > 0
    before = np.maximum.accumulate(np.where(known, np.arange(len(parts)), -1), axis=1)
    source = np.where(before >= 0, before, known.argmax(1)[:, None])
    return steps[[part[-1] for part in parts]], np.take_along_axis(means, source, axis=1)
