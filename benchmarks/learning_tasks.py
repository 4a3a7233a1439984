"""What `learning.py` trains: the agent, its environment, its settings, and what it must reach."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import optax

from accel_rl import agents, envs, networks, replay, tabular, train
from accel_rl.types import Environment

LEAST, MEAN = "least of the seeds", "mean of the seeds"


@dataclasses.dataclass(frozen=True)
class Task:
    """A training, and the bound that a statistic of its seeds' greedy returns must reach."""

    agent_name: str
    environment: str
    steps: int  # of environments, each seed
    seeds: int
    agent: Callable[[Environment], agents.Agent]
    statistic: str  # LEAST or MEAN
    bound: float
    max_steps: int = 10_000  # of a greedy episode
    capacity: int | None = 10_000  # of replay; None: the newest step is learned from, on-line
    batch_size: int = 128
    n_step: int = 1
    num_envs: int = 1
    rollout: int = 1
    updates: int = 1
    learning_starts: int = 1_000
    hyper: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of `Program.init`
    wrap: Callable[[Environment], Environment] = lambda env: env

    @property
    def name(self) -> str:
        """What it is called in records."""
        return f"{self.environment}, {self.agent_name}, {self.steps:,} steps"

    def env(self) -> Environment:
        """Return the environment, wrapped."""
        return self.wrap(envs.environment(self.environment))

    def program(self) -> train.Program:
        """Return the whole of it."""
        env = self.env()
        agent = self.agent(env)
        example = train.example(env, agent)
        memory = (
            replay.newest(example, self.num_envs)
            if self.capacity is None
            else replay.make(
                example,
                self.capacity,
                self.batch_size,
                num_envs=self.num_envs,
                n_step=self.n_step,
            )
        )
        return train.make(
            env,
            agent,
            memory,
            num_envs=self.num_envs,
            rollout=self.rollout,
            updates=self.updates,
            learning_starts=self.learning_starts,
        )


def decaying_adam(updates: int) -> optax.GradientTransformation:
    """Adam, the learning rate of which falls linearly from what it is to zero after `updates`."""
    return optax.chain(
        optax.scale_by_adam(),
        optax.scale_by_schedule(optax.linear_schedule(1.0, 0.0, updates)),
    )


def dqn(env: Environment, **options: Any) -> agents.Agent:
    """DQN, for a task."""
    return agents.dqn(env.observation_space, env.action_space, **options)


def continuous(make: Callable[..., agents.Agent], env: Environment, **options: Any) -> agents.Agent:
    """DDPG, TD3 or SAC, for a task."""
    return make(env.observation_space, env.action_space, **options)


def table(make_rule: Callable[[], tabular.TabularRule], env: Environment) -> agents.Agent:
    """Return a tabular agent, for a task."""
    return agents.tabular(make_rule(), env.observation_space, env.action_space)


def control() -> list[Task]:
    """DQN on CartPole (setting A of `training.py`, by what failed least) and on Acrobot."""
    cartpole = Task(
        agent_name="DQN",
        environment="CartPole-v1",
        steps=500_000,
        seeds=16,
        agent=partial(dqn, optimiser=decaying_adam(49_900)),
        statistic=LEAST,
        bound=475.0,
        max_steps=500,
        n_step=3,
        num_envs=10,
        hyper={"agent": {"epsilon_steps": 250_000}},
    )
    acrobot = dataclasses.replace(
        cartpole,
        environment="Acrobot-v1",
        steps=200_000,
        agent=partial(dqn, optimiser=decaying_adam(19_900)),
        statistic=MEAN,
        bound=-100.0,
        hyper={"agent": {"epsilon_steps": 50_000, "learning_rate": 1e-3}},
    )
    return [cartpole, acrobot]


def actor_critics() -> list[Task]:
    """TD3, DDPG and SAC on Pendulum, and DDPG on MountainCarContinuous."""
    shared = {"steps": 10_000, "seeds": 16, "statistic": MEAN, "bound": -160.0, "max_steps": 200}
    pendulum = [
        Task(
            agent_name=make.__name__.upper(),
            environment="Pendulum-v1",
            agent=partial(continuous, make),
            batch_size=256,
            **shared,
        )
        for make in (agents.td3, agents.ddpg, agents.sac)
    ]
    car = Task(
        agent_name="DDPG, OU noise",
        environment="MountainCarContinuous-v0",
        steps=20_000,
        seeds=16,
        agent=partial(continuous, agents.ddpg, noise="ornstein_uhlenbeck"),
        statistic=MEAN,
        bound=90.0,
        max_steps=999,
        capacity=20_000,
        batch_size=256,
        # Noise that drifts slowly reaches the goal, and before anything was learned.
        hyper={"agent": {"ou_theta": 0.05, "ou_sigma": 0.3, "random_steps": 0}},
    )
    return [*pendulum, car]


def tables() -> list[Task]:
    """Q-learning and SARSA, on-line, on FrozenLake and Taxi; the bounds are near the optimum."""
    rules: Mapping[str, Callable[[], tabular.TabularRule]] = {
        "Q-learning": tabular.q_learning,
        "SARSA": tabular.sarsa,
    }
    # The best policies reach 0.74 within 100 steps, and 7.9.
    limits = {"FrozenLake-v1": (400_000, 0.65, 0.02), "Taxi-v3": (400_000, 7.0, 0.1)}
    return [
        Task(
            agent_name=f"{name}, on-line",
            environment=environment,
            steps=steps,
            seeds=16,
            agent=partial(table, rule),
            statistic=MEAN,
            bound=bound,
            max_steps=200,
            capacity=None,
            num_envs=1,
            learning_starts=1,
            hyper={"agent": {"alpha": alpha, "epsilon_steps": steps // 2, "epsilon_end": 0.02}},
        )
        for environment, (steps, bound, alpha) in limits.items()
        for name, rule in rules.items()
    ]


def minatar() -> Task:
    """DQN on MinAtar's Breakout; its bound is set from what random actions return."""
    return Task(
        agent_name="DQN",
        environment="Breakout-MinAtar",
        steps=1_000_000,
        seeds=4,
        agent=partial(dqn, torso=networks.ConvTorso()),
        statistic=MEAN,
        bound=0.0,
        max_steps=2_000,
        capacity=100_000,
        batch_size=32,
        num_envs=10,
        updates=2,
        learning_starts=5_000,
        hyper={"agent": {"epsilon_steps": 200_000, "target_period": 200}},
    )


def at_random(agent: agents.Agent) -> agents.Agent:
    """Acts as the agent does before it has learned to: with an epsilon of 1, at random."""

    def act(policy: Any, memory: Any, observation: Any, key: Any, *_: Any, **__: Any) -> Any:
        return agent.act(policy, memory, observation, key, 0, explore=True)

    return agent._replace(act=act)


def quick(tasks: Sequence[Task]) -> list[Task]:
    """Return the same with few seeds and, of what is long, fewer steps."""
    return [
        dataclasses.replace(task, seeds=2, steps=max(task.steps // 4, task.learning_starts + 9_000))
        for task in tasks
    ]
