"""Flax modules for the agents."""

from accel_rl.networks.mlp import MLP
from accel_rl.networks.q_network import QNetwork

__all__ = ["MLP", "QNetwork"]
