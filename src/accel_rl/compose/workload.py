"""What a training asks of devices: roles, steps, and the numbers that say how large they are."""

import dataclasses
import itertools
import math

ROLES = ("actor", "replay_manager", "data_storage", "learner")
"""PEARL's tasks that are placed. The Replay Manager holds priorities and draws slots; the Data
Storage holds the transitions themselves."""

STEPS = ("collect", "insert", "sample", "update", "learn", "sync")
"""The steps of a training program, which the roles take: the actor collects, the Replay Manager and
the Data Storage insert and sample, the Replay Manager updates, the learner learns and syncs."""

WORD = 4  # bytes of a float32, an int32 or a uint32


@dataclasses.dataclass(frozen=True)
class Workload:
    """A training in numbers, as device models read it."""

    algorithm: str
    sampler: str
    observation_size: int  # numbers of an observation, S
    action_size: int  # numbers of an action, A
    outputs: int  # of the network: values of actions, or numbers of an action
    hidden: tuple[int, ...]  # widths of the network's hidden layers
    networks: int  # that the learner trains: 1 of DQN, else actor and critics, 2 or 3
    capacity: int  # transitions in the memory
    batch_size: int  # transitions of an update, B
    rows: int  # transitions that an iteration collects: num_envs times rollout
    updates: int  # of an iteration
    policy_bytes: int  # that are published

    @property
    def trained_samples(self) -> int:
        """Transitions that an iteration learns from."""
        return self.batch_size * self.updates

    @property
    def transition_bytes(self) -> int:
        """A transition: two observations, an action, reward, discount and truncation."""
        return WORD * (2 * self.observation_size + self.action_size + 2) + 1

    def items(self, step: str) -> int:
        """Transitions that the Replay Manager inserts, draws or updates in a call of a step."""
        return self.rows if step == "insert" else self.batch_size

    def bytes_of(self, step: str) -> int:
        """What a step is handed from another device, in bytes.

        `collect` gets the policy, `insert` the transitions, `learn` a batch with its weights,
        `update` indices, generations and priorities of a batch; `sample` and `sync` get nothing.
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
        """Slots of a batch, which the Replay Manager names to a Data Storage elsewhere."""
        return self.batch_size * WORD

    @property
    def widths(self) -> tuple[int, ...]:
        """Of a network, from the input to the output."""
        return (self.observation_size, *self.hidden, self.outputs)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each layer of a network."""
        return tuple(itertools.pairwise(self.widths))

    @property
    def parameters(self) -> int:
        """Of the networks that are trained, without targets."""
        return self.networks * sum(i * o + o for i, o in self.layers)

    @property
    def learn_flops(self) -> int:
        """Of an update, by the rule of thumb: 2 a weight forward, 4 backward, 2 for the target."""
        return 8 * self.batch_size * self.networks * sum(math.prod(pair) for pair in self.layers)
