"""What a chunk's metrics look like in a log."""

from collections.abc import Mapping

import numpy as np

from accel_rl.io.loggers import Row

__all__ = ["COUNTED", "Row", "row"]

# What `Program.metrics` gives besides the agent's own metrics.
COUNTED = ("steps", "episodes", "episode_return", "episode_length", "updates")


def row(metrics: Mapping[str, np.ndarray], seconds: float) -> Row:
    """A row as loggers take it.

    Args:
      metrics: scalars, or [seeds] each.
      seconds: wall-clock time of training so far.

    Returns:
      `steps`, the other metrics as means over the seeds for which they are not NaN, `seconds`; and
      where there are seeds, `per_seed`: lists of all metrics but `steps`.
    """
    values: Row = {"steps": int(np.ravel(metrics["steps"])[0])}
    others = {name: np.asarray(metrics[name]) for name in metrics if name != "steps"}
    values.update({name: _mean(value) for name, value in others.items()})
    values["seconds"] = seconds
    if np.ndim(metrics["steps"]):
        values["per_seed"] = {name: value.tolist() for name, value in others.items()}
    return values


def _mean(value: np.ndarray) -> float | int:
    if value.ndim == 0:
        return value.item()
    known = value[~np.isnan(value)].astype(np.float64)
    return float(known.mean()) if known.size else float("nan")
