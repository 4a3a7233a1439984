"""Functions from an environment to an environment: limits, rewards, observations, statistics.

Each takes a `types.Environment` and gives another, of the same contract; put one around the other.
"""

from accel_rl.envs.wrappers.episodes import episode_statistics, time_limit
from accel_rl.envs.wrappers.normalisation import RunningStatistics, normalise_observations
from accel_rl.envs.wrappers.observations import (
    cast_observations,
    flatten_observations,
    frame_stack,
    map_observations,
    one_hot,
)
from accel_rl.envs.wrappers.rewards import clip_rewards, map_rewards, scale_rewards

__all__ = [
    "RunningStatistics",
    "cast_observations",
    "clip_rewards",
    "episode_statistics",
    "flatten_observations",
    "frame_stack",
    "map_observations",
    "map_rewards",
    "normalise_observations",
    "one_hot",
    "scale_rewards",
    "time_limit",
]
