"""Experiments: trainings described by one configuration, from files, words or Python.

    experiment.load("cartpole.toml").train()
    experiment.load(agent="dqn", environment="CartPole-v1").train("runs/cartpole")
    experiment.load_run("runs/cartpole").policy()

A configuration is plain data in typed sections. `load` merges its layers (presets, file, words),
validates it and assembles environment, agent, replay buffer and program. The commands `train`,
`sweep`, `resume` and `evaluate` use this package; see docs/configuration.md.
"""

from accel_rl.experiment.assembly import Experiment, assemble
from accel_rl.experiment.configuration import Configuration
from accel_rl.experiment.loading import load
from accel_rl.experiment.schema import schema
from accel_rl.experiment.trained import TrainedRun, load_run

__all__ = [
    "Configuration",
    "Experiment",
    "TrainedRun",
    "assemble",
    "load",
    "load_run",
    "schema",
]
