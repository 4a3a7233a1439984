"""Whether a training has left the numbers."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.train.rows import COUNTED


def divergence(metrics: Mapping[str, np.ndarray], finite: np.ndarray, agent: Any) -> str | None:
    """What is not finite after a segment; None if everything is.

    Args:
      metrics: of `Program.metrics`, scalars or [seeds]. Those of the agent count where it learned.
      finite: whether the agent's state is, bool, a scalar or [seeds].
      agent: its state, read only where it is not.

    Returns:
      The metric or part of the state, its value, the seeds and the step.
    """
    step = np.ravel(metrics["steps"])[0]
    for name in metrics:
        if name not in COUNTED:
            bad = ~np.isfinite(metrics[name]) & (metrics["updates"] > 0)
            if bad.any():
                return f"{name} is {metrics[name][bad][0]}{_of(bad)} at step {step}"
    if finite.all():
        return None
    for path, leaf in jax.tree_util.tree_flatten_with_path(agent)[0]:
        values = np.array(leaf, np.float32).reshape(*finite.shape, -1)
        bad = np.asarray(~np.isfinite(values).all(axis=-1))
        if bad.any():
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            return f"the agent's {name} is not finite{_of(bad)} at step {step}"
    raise AssertionError("what was not finite has become so")


def _of(bad: np.ndarray) -> str:
    seeds = ", ".join(map(str, np.flatnonzero(bad)))
    return f" for seed {seeds}" if bad.ndim else ""
