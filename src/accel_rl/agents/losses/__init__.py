"""Losses and TD errors of one transition; `vmap` them over a batch."""

from accel_rl.agents.losses.deterministic_policy import (
    clipped_double_q,
    deterministic_policy,
    smoothed,
    worst,
)
from accel_rl.agents.losses.distributional import (
    categorical_q_learning,
    project,
    quantile_q_learning,
    quantile_regression,
)
from accel_rl.agents.losses.q_learning import q_learning
from accel_rl.agents.losses.regression import LOSSES, huber, squared
from accel_rl.agents.losses.soft_actor_critic import (
    soft_policy,
    soft_q,
    squashed_gaussian,
    temperature_loss,
)

__all__ = [
    "LOSSES",
    "categorical_q_learning",
    "clipped_double_q",
    "deterministic_policy",
    "huber",
    "project",
    "q_learning",
    "quantile_q_learning",
    "quantile_regression",
    "smoothed",
    "soft_policy",
    "soft_q",
    "squared",
    "squashed_gaussian",
    "temperature_loss",
    "worst",
]
