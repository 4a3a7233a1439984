"""Ape-X training of an experiment, as its learner and actors see it."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from accel_rl import agents, experiment, train
from accel_rl.agents.exploration import Exploration
from accel_rl.arguments import whole
from accel_rl.experiment import Experiment, assemble
from accel_rl.experiment.configuration import from_mapping, to_mapping
from accel_rl.remote.port import RemotePort
from accel_rl.remote.shard import Address
from accel_rl.replay.index import Index
from accel_rl.train import Program, Schedule


def load(
    environment: str | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    file: str | Path | None = None,
    words: Sequence[str] = (),
) -> "ApexTraining":
    """Load the experiment of an Ape-X training, with the presets of `accel-rl apex`.

    Args:
      environment: its name, such as "CartPole-v1"; the file's if None.
      settings: values by dotted name, such as {"apex.num_actors": 8}.
      file: TOML, or a run's `config.json`; see docs/configuration.md.
      words: settings as on the command line.
    """
    agent = "dqn" if file is None else None
    return ApexTraining(
        experiment.load(
            file, settings, agent=agent, environment=environment, words=words, command="apex"
        )
    )


@dataclasses.dataclass(frozen=True)
class ApexTraining:
    """Experiment whose actors and learner are processes around a replay server.

    An iteration is `rollout` steps of all environments, which the actors share, and `updates`
    updates. The server's limiter keeps both in step, so environment steps are counted by updates.
    """

    experiment: Experiment

    def __post_init__(self) -> None:
        """Refuse what would be ignored, or would train something else."""
        config = self.experiment.configuration
        for name, value, wanted in (
            ("agent.name", config.agent.name, "dqn"),
            ("replay.sampler", config.replay.sampler, "prioritised"),
            ("replay.weights_over", config.replay.weights_over, "batch"),
            ("training.seeds", self.experiment.trainings, 1),
            ("evaluation.stop_at", config.evaluation.stop_at, None),
            ("evaluation.stop_excess", config.evaluation.stop_excess, None),
        ):
            if value != wanted:
                raise ValueError(f"{name} must be {wanted} for Ape-X, got {value}")
        if self.schedule.num_envs % self.num_actors:
            raise ValueError(
                f"schedule.num_envs must be a multiple of apex.num_actors, {self.num_actors}, got "
                f"{self.schedule.num_envs}"
            )

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any]) -> "ApexTraining":
        """Make a training from `tables` of another process."""
        return cls(assemble(from_mapping(tables)))

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """Configuration as tables that serialise to JSON."""
        config = self.experiment.configuration
        return {**to_mapping(config), "apex": dataclasses.asdict(config.apex)}

    @property
    def schedule(self) -> Schedule:
        """Schedule of an iteration over all actors."""
        return self.experiment.program.schedule

    @property
    def num_actors(self) -> int:
        """Number of actor processes."""
        return self.experiment.configuration.apex.num_actors

    @property
    def envs_per_actor(self) -> int:
        """Number of environments of each actor."""
        return self.schedule.num_envs // self.num_actors

    @property
    def run(self) -> str:
        """Name of the training on the server, and of its table."""
        return self.experiment.configuration.apex.run

    @property
    def n_step(self) -> int:
        """Rewards in a target."""
        return self.experiment.configuration.replay.n_step

    @property
    def batch_size(self) -> int:
        """Transitions of an update."""
        return self._index.batch_size

    @property
    def _index(self) -> Index:
        return self.experiment.program.require_replay().parts[0]

    @property
    def key(self) -> jax.Array:
        """PRNG key of all randomness, except the relative timing of processes."""
        return jax.random.key(np.uint32(self.experiment.configuration.training.seed))

    @property
    def hyper(self) -> dict[str, Any]:
        """Arguments of `Program.init`; the server holds those of the sampler."""
        return {name: each for name, each in self.experiment.hyper.items() if name != "replay"}

    @property
    def exploration(self) -> Exploration:
        """Epsilon-greedy exploration with an epsilon for each environment."""
        config = self.experiment.configuration.apex
        return agents.ape_x_exploration(
            self.schedule.num_envs, config.epsilon, config.epsilon_spread
        )

    def port(
        self,
        address: Address,
        num_envs: int,
        secret: bytes | None = None,
        replica: tuple[int, int] = (0, 1),
        recover: float | None = None,
    ) -> RemotePort:
        """Open a replay port; create the table if it is missing.

        Args:
          address: of the server, or of several shards.
          num_envs: environments whose transitions are added together.
          secret: shared secret, if the server has one.
          replica: index of this learner, and the number of learners that share a batch.
          recover: seconds to wait for a server that is restarted; see `RemotePort`.
        """
        number, learners = replica
        self.check_learners(learners)
        schedule, config = self.schedule, self.experiment.configuration.replay
        samples = schedule.updates * self.batch_size
        return RemotePort(
            address,
            train.example(self.experiment.env, self.experiment.program.agent),
            # The port subtracts this term: the table has the same capacity for every `num_envs`.
            self._index.ring.capacity + (self.n_step - 1) * num_envs,
            self.batch_size // learners,
            num_envs=num_envs,
            n_step=self.n_step,
            alpha=config.options["alpha"],
            least_size=max(self.batch_size, schedule.learning_starts),
            samples_per_insert=samples / schedule.steps,
            slack=4.0 * max(samples, self.batch_size),
            table=self.run,
            secret=secret,
            replica=number,
            recover=recover,
        )

    def check_learners(self, learners: int) -> None:
        """Raise ValueError or TypeError if so many learners cannot share a batch equally."""
        whole("learners", learners, 1)
        if self.batch_size % learners:
            raise ValueError(
                f"batch_size must be a multiple of the learners, {learners}, got {self.batch_size}"
            )

    def program(self, port: RemotePort) -> Program:
        """Return the training program of learner and actors, with the port as its buffer."""
        made = self.experiment.program
        schedule = dataclasses.asdict(made.schedule)
        return train.make(made.env, made.agent, port, reward_scale=made.reward_scale, **schedule)
