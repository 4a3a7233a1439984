"""Agents: what acts on observations and learns from batches."""

from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.dqn import dqn
from accel_rl.agents.hyperparameters import Limits

__all__ = ["Agent", "Learned", "Limits", "dqn"]
