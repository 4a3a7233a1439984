"""What the workers of a pipelined training share."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.train.actors import CACHED, Actor, Rollout, Version
from accel_rl.train.collection import example
from accel_rl.train.learning import Drawing, Learner, Lesson
from accel_rl.train.ledger import Ledger
from accel_rl.train.program import Program, without_batch
from accel_rl.train.queues import Queue, Workers
from accel_rl.train.restarts import Restarts
from accel_rl.train.schedule import Schedule
from accel_rl.types import Array, Batch, ReplayPort, Sample


@dataclasses.dataclass
class Job:
    """A pipelined training under way."""

    program: Program
    first: int  # iteration
    last: int  # the iteration after the last
    actors: Sequence[Actor]
    port: ReplayPort
    learner: Learner
    drawing: Drawing
    workers: Workers
    ledger: Ledger
    restarts: Restarts
    rollouts: Sequence[Queue]  # one for each actor
    batches: Queue
    on_publish: Callable[[Version], None] | None = None

    def collect(self, number: int, version: Version, iteration: int) -> None:
        """An actor's part of an iteration, to its queue."""
        with self.workers.working("collect"):
            rollout = self._collected(self.actors[number], version, iteration)
        self.rollouts[number].put(rollout)

    def _collected(self, actor: Actor, version: Version, iteration: int) -> Rollout:
        """Again after each restart: what failed has handed on nothing."""
        while True:
            try:
                return actor.collect(version, iteration)
            except Exception as error:
                if not self.restarts.take(error):
                    raise
                try:
                    actor.restart(version)
                except Exception as why:
                    what = f"{type(why).__name__}: {why}"
                    error.add_note(f"the actor could not be started anew: {what}")
                    raise error from why

    def insert(self, rollout: Rollout) -> None:
        """Adds transitions to the memory."""
        with self.workers.working("insert"):
            self.port.add(rollout.transitions, rollout.priorities)

    def sample(self, key: Array, beta: float) -> tuple[Lesson, Sample]:
        """A batch from the memory, where the learner is; and what is left, for its priorities."""
        with self.workers.working("sample"):
            sample = self.port.sample(key, beta, self.drawing.gamma)
            return self.learner.lesson(sample), without_batch(sample)

    def learn(self, lesson: Lesson, key: np.ndarray) -> tuple[Array, dict[str, np.ndarray]]:
        """An update; priorities and metrics."""
        with self.workers.working("learn"):
            return self.learner.learn(lesson, key)

    def update(self, sample: Sample, priorities: Array) -> None:
        """Gives priorities to the memory."""
        with self.workers.working("update"):
            self.port.update(sample, priorities)

    def publish(self) -> Version:
        """A copy of the newest policy."""
        with self.workers.working("sync"):
            version = self.learner.publish()
            if self.on_publish is not None:
                self.on_publish(version)
            return version

    @property
    def updates(self) -> int:
        """From the start of the training to its end."""
        return updates_until(self.program.schedule, self.last - 1)

    def learns(self, iteration: int) -> bool:
        """Whether there are updates in an iteration."""
        return iteration >= self.program.schedule.warmup


def updates_until(schedule: Schedule, iteration: int) -> int:
    """Updates from the start to the end of an iteration, in the order of the program."""
    return schedule.updates * max(0, iteration + 1 - schedule.warmup)


@functools.lru_cache(maxsize=CACHED)
def metric_names(program: Program) -> list[str]:
    """Of the agent's metrics."""
    step = example(program.env, program.agent)

    def learn() -> dict[str, Any]:
        def one(leaf: Any) -> Array:
            return jnp.zeros((1, *leaf.shape), leaf.dtype)

        agent: Agent = program.agent
        observation, action, reward, extras = jax.tree.map(
            one, (step.observation, step.action, step.reward, step.extras)
        )
        batch = Batch(observation, action, reward, reward, observation, extras)
        state = agent.init(jax.random.key(0))
        return agent.learn(state, batch, reward, jax.random.key(0))[1].metrics

    return list(jax.eval_shape(learn))
