"""Ape-X: actors and a learner in processes of their own, around a replay memory server.

Both are placements of `train`'s program: actors are `train.act`, the learner is `train.pipelined`
without actors, and `remote.RemotePort` is the memory of all.

Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018.
"""

from accel_rl.remote.apex.acting import run_actor
from accel_rl.remote.apex.launcher import Actors
from accel_rl.remote.apex.learners import run_learners
from accel_rl.remote.apex.learning import run_learner
from accel_rl.remote.apex.local import LocalActors
from accel_rl.remote.apex.ray import RayActors
from accel_rl.remote.apex.settings import ApexSettings

__all__ = [
    "Actors",
    "ApexSettings",
    "LocalActors",
    "RayActors",
    "run_actor",
    "run_learner",
    "run_learners",
]
