"""Agents: factories of pure functions that act on observations and learn from batches."""

from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.ddpg import ddpg
from accel_rl.agents.dqn import dqn
from accel_rl.agents.exploration import ape_x_exploration
from accel_rl.agents.hyperparameters import Limits
from accel_rl.agents.normalised import normalise_observations
from accel_rl.agents.sac import sac
from accel_rl.agents.tabular import tabular
from accel_rl.agents.td3 import td3

__all__ = [
    "Agent",
    "Learned",
    "Limits",
    "ape_x_exploration",
    "ddpg",
    "dqn",
    "normalise_observations",
    "sac",
    "tabular",
    "td3",
]
