"""Ape-X: actors and learner in separate processes, around a replay server.

Both run parts of `train`'s program: actors run `train.act`, the learner runs `train.pipelined`
without actors, and all share one replay buffer through `remote.RemotePort`.

Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018.
"""

from accel_rl.remote.apex.acting import run_actor
from accel_rl.remote.apex.launcher import Actors, LocalActors
from accel_rl.remote.apex.learners import run_learners
from accel_rl.remote.apex.learning import run_learner
from accel_rl.remote.apex.ray import RayActors
from accel_rl.remote.apex.servers import LocalServers
from accel_rl.remote.apex.training import ApexTraining, load

__all__ = [
    "Actors",
    "ApexTraining",
    "LocalActors",
    "LocalServers",
    "RayActors",
    "load",
    "run_actor",
    "run_learner",
    "run_learners",
]
