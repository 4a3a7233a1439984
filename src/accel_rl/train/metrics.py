"""Metrics of a training segment: as a row of a log, and checked for divergence."""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.io.loggers import Row
from accel_rl.train.state import SegmentSums
from accel_rl.train.value_limit import EXCESS
from accel_rl.types import Array, PyTree


def segment_metrics(sums: SegmentSums, steps: Array) -> dict[str, Array]:
    """Convert the sums of a segment to metrics; see `Program.metrics`.

    Args:
      sums: of the segment.
      steps: environment steps since the start, [] int32.
    """
    episodes = sums.episodes
    count = _positive(episodes.count)
    learned = {name: each / _positive(sums.updates) for name, each in sums.learned.items()}
    if "value" in learned:
        limit = _positive(sums.value_limit)
        learned[EXCESS] = jnp.abs(learned["value"]) / limit
    return {
        "steps": steps,
        "episodes": episodes.count,
        "episode_return": episodes.episode_return / count,
        "episode_length": episodes.episode_length / count,
        "updates": sums.updates,
        **learned,
    }


def _positive(count: Array) -> Array:
    """Convert to float32, with NaN for zero."""
    return jnp.where(count > 0, count.astype(jnp.float32), np.float32(np.nan))


def row(metrics: Mapping[str, np.ndarray], seconds: float) -> Row:
    """Convert metrics to a row for loggers.

    Args:
      metrics: scalars, or [seeds] each.
      seconds: wall-clock time of training so far.

    Returns:
      `steps`, `seconds`, and the mean of each other metric over the seeds for which it is not NaN.
      With an axis of seeds also `per_seed`, a list for each metric but `steps`.
    """
    values: Row = {"steps": int(np.ravel(metrics["steps"])[0])}
    others = {name: np.asarray(metrics[name]) for name in metrics if name != "steps"}
    values.update({name: _mean(value) for name, value in others.items()})
    values["seconds"] = seconds
    if np.ndim(metrics["steps"]):
        values["per_seed"] = {name: value.tolist() for name, value in others.items()}
    return values


def divergence(
    metrics: Mapping[str, np.ndarray], learned: Sequence[str], finite: np.ndarray, agent: PyTree
) -> str | None:
    """Describe the first NaN or infinity among metrics and parameters; None if there is none.

    Args:
      metrics: from `Program.metrics`, scalars or [seeds].
      learned: names of the agent's metrics, which count where there were updates.
      finite: whether the agent's state is finite, bool, a scalar or [seeds].
      agent: the agent's state, read only where it is not finite.

    Returns:
      The metric or part of the state, its value, the seeds and the step.
    """
    step = np.ravel(metrics["steps"])[0]
    for name in learned:
        bad = ~np.isfinite(metrics[name]) & (metrics["updates"] > 0)
        if bad.any():
            return f"{name} is {metrics[name][bad][0]}{_for_seeds(bad)} at step {step}"
    leaves = [] if finite.all() else jax.tree_util.tree_flatten_with_path(agent)[0]
    for path, leaf in leaves:
        values = np.array(leaf, np.float32).reshape(*finite.shape, -1)
        bad = np.asarray(~np.isfinite(values).all(axis=-1))
        if bad.any():
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            return f"the agent's {name} is not finite{_for_seeds(bad)} at step {step}"
    return None


def _mean(value: np.ndarray) -> float | int:
    if value.ndim == 0:
        return value.item()
    known = value[~np.isnan(value)].astype(np.float64)
    return float(known.mean()) if known.size else float("nan")


def _for_seeds(bad: np.ndarray) -> str:
    seeds = ", ".join(map(str, np.flatnonzero(bad)))
    return f" for seed {seeds}" if bad.ndim else ""
