"""Settings of a distributed training, shared by its learner and actors."""

import dataclasses
import functools
import math
from typing import Any

import jax

from accel_rl import agents, envs, train
from accel_rl.agents import Agent
from accel_rl.arguments import integer, whole
from accel_rl.io.validation import STRICT
from accel_rl.networks.checks import require_widths
from accel_rl.remote.port import RemotePort
from accel_rl.remote.shard import Address
from accel_rl.train import Program
from accel_rl.types import Environment


@dataclasses.dataclass(frozen=True)
class ApexSettings:
    """Settings of an Ape-X training: strings and numbers only, so that they serialise to JSON.

    An iteration is `rollout` steps of all environments and `updates` updates. The server's limiter
    keeps both in step, so environment steps are counted by updates.
    """

    __pydantic_config__ = STRICT

    environment: str = "CartPole-v1"
    num_actors: int = 2
    envs_per_actor: int = 4
    rollout: int = 8  # steps of each environment between two pushes
    updates: int = 8  # between two publications of the policy
    batch_size: int = 64
    n_step: int = 3
    capacity: int = 50_000  # transitions
    learning_starts: int = 1_000  # transitions
    alpha: float = 0.6  # priority exponent
    beta: float = 0.4  # initial exponent of importance-sampling weights; it rises to 1
    beta_steps: int = 100_000  # environment steps until beta is 1
    gamma: float = 0.99
    learning_rate: float = 1e-3
    target_period: int = 200  # updates
    hidden: tuple[int, ...] = (120, 84)
    epsilon: float = 0.4  # of the environment that explores most
    epsilon_spread: float = 7.0  # alpha of `agents.ape_x_exploration`
    seed: int = 0
    run: str = "apex"  # name of the training on the server, and of its table

    def __post_init__(self) -> None:
        """Raise ValueError for a number out of range."""
        require_widths("hidden", self.hidden)
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if not self.run:
            raise ValueError("run must name the training, got ''")
        for field in dataclasses.fields(self):
            value, default = getattr(self, field.name), field.default
            if isinstance(default, int) and field.name != "seed":
                whole(field.name, value, 1)
            if isinstance(default, float) and not 0 <= value < math.inf:
                raise ValueError(f"{field.name} must be finite and at least 0, got {value}")
        for name in ("batch_size", "learning_starts"):
            if getattr(self, name) > self.capacity:
                raise ValueError(
                    f"{name} must be at most capacity, {self.capacity}, got {getattr(self, name)}"
                )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be from 0 to 2^32 - 1, got {self.seed}")
        for name in ("gamma", "epsilon"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must be from 0 to 1, got {getattr(self, name)}")

    @property
    def num_envs(self) -> int:
        """Number of environments of all actors."""
        return self.num_actors * self.envs_per_actor

    @property
    def key(self) -> jax.Array:
        """PRNG key of all randomness, except the relative timing of processes."""
        return jax.random.key(self.seed)

    @property
    def hyper(self) -> dict[str, Any]:
        """Arguments of `Program.init`."""
        agent = {"learning_rate": self.learning_rate, "target_period": self.target_period}
        steps = {"beta": self.beta, "beta_steps": self.beta_steps, "gamma": self.gamma}
        return {"agent": agent, **steps}

    @property
    def schedule(self) -> dict[str, int]:
        """Fields of `train.Schedule`."""
        return {
            "num_envs": self.num_envs,
            "rollout": self.rollout,
            "updates": self.updates,
            "learning_starts": self.learning_starts,
            "priority_lag": 1,
            "policy_lag": 1,
        }

    @property
    def exploration(self) -> Any:
        """Epsilon-greedy exploration with an epsilon for each environment."""
        return agents.ape_x_exploration(self.num_envs, self.epsilon, self.epsilon_spread)

    @functools.cached_property
    def parts(self) -> tuple[Environment, Agent]:
        """Environment and agent."""
        env = envs.environment(self.environment)
        agent = agents.dqn(env.observation_space, env.action_space, hidden=self.hidden)
        return env, agent

    def port(
        self,
        address: Address,
        num_envs: int,
        secret: bytes | None = None,
        replica: tuple[int, int] = (0, 1),
    ) -> RemotePort:
        """Open a replay port; create the table if it is missing.

        Args:
          address: of the server, or of several shards.
          num_envs: environments whose transitions are added together.
          secret: shared secret, if the server has one.
          replica: index of this learner, and the number of learners that share a batch.

        Raises:
          ValueError: if the batch size is not a multiple of the number of learners.
          RemoteError: if the server cannot be reached, or has another table of that name.
        """
        number, learners = replica
        self.check_learners(learners)
        iteration = self.num_envs * self.rollout
        samples = self.updates * self.batch_size
        ratio = samples / iteration
        return RemotePort(
            address,
            train.example(*self.parts),
            # The port subtracts this term: the table has the same capacity for every `num_envs`.
            self.capacity + (self.n_step - 1) * num_envs,
            self.batch_size // learners,
            num_envs=num_envs,
            n_step=self.n_step,
            alpha=self.alpha,
            least_size=max(self.batch_size, self.learning_starts),
            samples_per_insert=ratio,
            slack=4.0 * max(samples, self.batch_size),
            table=self.run,
            secret=secret,
            replica=number,
        )

    def check_learners(self, learners: int) -> None:
        """Raise ValueError or TypeError if so many learners cannot share a batch equally."""
        integer("learners", learners)
        if learners < 1 or self.batch_size % learners:
            raise ValueError(
                f"batch_size must be a multiple of the learners, {learners}, got {self.batch_size}"
            )

    def check(self, steps: int, period: int | None = None) -> None:
        """Check the settings before processes are started.

        Raises:
          ValueError: if the environment is unknown, DQN cannot act in it, `steps` leaves no
            updates, or the period between rows is below 1.
        """
        try:
            jax.eval_shape(lambda: self.parts[1].init(self.key, **self.hyper["agent"]))
        except TypeError as error:
            raise ValueError(str(error)) from error
        train.segments(train.Schedule(**self.schedule), steps, period)

    def program(self, port: RemotePort) -> Program:
        """Build the training program of learner and actors.

        Raises:
          ValueError: if the environment is unknown, or DQN cannot act in it.
        """
        env, agent = self.parts
        return train.make(env, agent, port, **self.schedule)
