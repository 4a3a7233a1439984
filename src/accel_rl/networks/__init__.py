"""Flax modules of the agents' networks."""

from accel_rl.networks.actor_critic import Critic, DeterministicActor, GaussianActor
from accel_rl.networks.convolution import ConvTorso, NatureTorso
from accel_rl.networks.dense import MLP, Dense
from accel_rl.networks.noisy import NoisyDense
from accel_rl.networks.q_network import QNetwork

__all__ = [
    "MLP",
    "ConvTorso",
    "Critic",
    "Dense",
    "DeterministicActor",
    "GaussianActor",
    "NatureTorso",
    "NoisyDense",
    "QNetwork",
]
