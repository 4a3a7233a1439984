"""Sizes of an experiment whose training is to be placed on devices."""

import jax
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.compose.workload import Workload
from accel_rl.experiment import Experiment
from accel_rl.replay import SAMPLERS
from accel_rl.types import Box, Discrete, Space

NETWORKS = {"dqn": 1, "ddpg": 2, "td3": 3, "sac": 3}
"""Number of networks that the learner of each agent trains."""


def workload(experiment: Experiment) -> Workload:
    """Return the sizes of an experiment's training; raise ValueError if no model covers it."""
    config, program = experiment.configuration, experiment.program
    name, options = config.agent.name, config.agent.options
    if name not in NETWORKS or options.get("torso", "mlp") != "mlp":
        raise ValueError(
            f"agent must be one of {', '.join(NETWORKS)} with agent.torso=mlp to be placed on "
            f"devices, got {name} {options.get('torso', '')}".rstrip()
        )
    one_of("replay.sampler", config.replay.sampler, SAMPLERS)
    if experiment.trainings > 1:
        raise ValueError(
            f"one training is placed on devices: training.seeds must be 1 and nothing swept, got "
            f"{experiment.trainings} trainings"
        )
    policy = jax.eval_shape(lambda: program.agent.policy(program.agent.init(jax.random.key(0))))
    action, schedule = program.env.action_space, program.schedule
    index = program.require_replay().parts[0]
    return Workload(
        algorithm=name,
        sampler=config.replay.sampler,
        observation_size=_size(program.env.observation_space),
        action_size=_size(action),
        outputs=action.n if isinstance(action, Discrete) else _size(action),
        hidden=tuple(options["hidden"]),
        networks=NETWORKS[name],
        capacity=index.ring.capacity,
        batch_size=index.batch_size,
        rows=schedule.num_envs * schedule.rollout,
        updates=schedule.updates,
        policy_bytes=sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(policy)),
    )


def _size(space: Space) -> int:
    return int(np.prod(space.shape)) if isinstance(space, Box) else 1
