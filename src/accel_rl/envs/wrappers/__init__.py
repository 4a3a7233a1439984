"""Environment wrappers: time limits, rewards, observations and statistics.

Each wrapper takes a `types.Environment` and returns another; wrappers can be nested.
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
