"""Workload of a training on devices: roles, steps and sizes."""

import dataclasses
import itertools
import math

import jax
import numpy as np

from accel_rl.arguments import one_of
from accel_rl.experiment import Experiment
from accel_rl.experiment.configuration import Configuration
from accel_rl.replay import SAMPLERS
from accel_rl.types import Box, Discrete, Space

ROLES = ("actor", "replay_manager", "data_storage", "learner")
"""PEARL's tasks that are placed. The Replay Manager holds priorities and samples slots; the Data
Storage holds the transitions."""

STEPS = ("collect", "insert", "sample", "update", "learn", "sync")
"""Steps of a training program. The actor collects, the Replay Manager and the Data Storage insert
and sample, the Replay Manager updates priorities, the learner learns and syncs."""

WORD = 4  # bytes of a float32, an int32 or a uint32


@dataclasses.dataclass(frozen=True)
class Workload:
    """Sizes of a training, as device models read them."""

    sampler: str
    observation_size: int  # numbers of an observation, S
    action_size: int  # numbers of an action, A
    inputs: int  # of the network: S, or the number of states, which are encoded one-hot
    outputs: int  # of the network: action values, or numbers of an action; times its atoms
    hidden: tuple[int, ...]  # widths of the network's hidden layers
    plain: bool  # True if the network is a plain perceptron, neither dueling nor noisy
    networks: int  # that the learner trains: 1 for DQN, else actor and critics, 2 or 3
    capacity: int  # transitions in the replay buffer
    batch_size: int  # transitions of an update, B
    rows: int  # transitions collected in an iteration: num_envs times rollout
    updates: int  # in an iteration
    policy_bytes: int  # of the published policy

    @property
    def trained_samples(self) -> int:
        """Transitions trained in an iteration."""
        return self.batch_size * self.updates

    @property
    def transition_bytes(self) -> int:
        """Bytes of a transition: two observations, an action, reward, discount and truncation."""
        return WORD * (2 * self.observation_size + self.action_size + 2) + 1

    def items(self, step: str) -> int:
        """Return the transitions that the Replay Manager inserts, samples or updates in a call."""
        return self.rows if step == "insert" else self.batch_size

    def bytes_of(self, step: str) -> int:
        """Return the bytes that a step receives from another device.

        `collect` receives the policy, `insert` the transitions, `learn` a batch with its
        importance-sampling weights, `update` indices, generations and priorities of a batch;
        `sample` and `sync` receive nothing.
        """
        batch = self.transition_bytes + WORD
        return {
            "collect": self.policy_bytes,
            "insert": self.rows * self.transition_bytes,
            "learn": self.batch_size * batch,
            "update": self.batch_size * 3 * WORD,
        }.get(step, 0)

    @property
    def index_bytes(self) -> int:
        """Bytes of a batch's slot indices, sent by the Replay Manager to a remote Data Storage."""
        return self.batch_size * WORD

    @property
    def widths(self) -> tuple[int, ...]:
        """Layer widths of a network, from the input to the output."""
        return (self.inputs, *self.hidden, self.outputs)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Input and output widths of each layer of a network."""
        return tuple(itertools.pairwise(self.widths))

    @property
    def parameters(self) -> int:
        """Number of parameters of the trained networks, without target networks."""
        return self.networks * sum(i * o + o for i, o in self.layers)

    @property
    def learn_flops(self) -> int:
        """FLOP of an update, by rule of thumb: 2 a weight forward, 4 backward, 2 for the target."""
        return 8 * self.batch_size * self.networks * sum(math.prod(pair) for pair in self.layers)


NETWORKS = {"dqn": 1, "ddpg": 2, "td3": 3, "sac": 3}
"""Number of networks that the learner of each agent trains."""


def workload_of(experiment: Experiment) -> Workload:
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
    _check_ignored(config)
    policy = jax.eval_shape(lambda: program.agent.policy(program.agent.init(jax.random.key(0))))
    observation, action = program.env.observation_space, program.env.action_space
    atoms = options["num_atoms"] if options.get("distributional") else 1
    schedule = program.schedule
    index = program.require_replay().parts[0]
    return Workload(
        sampler=config.replay.sampler,
        observation_size=_size(observation),
        action_size=_size(action),
        inputs=observation.n if isinstance(observation, Discrete) else _size(observation),
        outputs=atoms * (action.n if isinstance(action, Discrete) else _size(action)),
        hidden=tuple(options["hidden"]),
        plain=not (options.get("dueling") or options.get("noisy")),
        networks=NETWORKS[name],
        capacity=index.ring.capacity,
        batch_size=index.batch_size,
        rows=schedule.num_envs * schedule.rollout,
        updates=schedule.updates,
        policy_bytes=sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(policy)),
    )


def _check_ignored(config: Configuration) -> None:
    """Raise ValueError for a setting that a composed run would ignore."""
    evaluation = config.evaluation
    for name, value, wanted, reason in (
        ("evaluation.stop_at", evaluation.stop_at, None, "a composed run does not evaluate"),
        ("evaluation.stop_excess", evaluation.stop_excess, None, "a composed run takes all steps"),
        ("checkpoints.every", config.checkpoints.every, None, "a composed run has no checkpoints"),
        ("training.executor", config.training.executor, "fused", "a mapping has its own executor"),
    ):
        if value != wanted:
            must = "none" if wanted is None else wanted
            raise ValueError(f"{name} must be {must} for compose, got {value}: {reason}")


def _size(space: Space) -> int:
    return int(np.prod(space.shape)) if isinstance(space, Box) else 1
