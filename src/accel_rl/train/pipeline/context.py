"""Context that the workers of a pipelined training share: the steps, timed, and their queues."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.io.values import Json
from accel_rl.train.collection import example
from accel_rl.train.pipeline.actors import CACHED, Actor, Rollout, Version
from accel_rl.train.pipeline.learner import Learner, LearnerBatch, UpdateInputs
from accel_rl.train.pipeline.metrics import MetricsRecorder
from accel_rl.train.pipeline.workers import Queue, Restarts, Workers
from accel_rl.train.program import Program
from accel_rl.train.schedule import Schedule
from accel_rl.train.state import without_batch
from accel_rl.types import Array, Batch, PyTree, ReplayPort, Sample


@dataclasses.dataclass
class Context:
    """Parts of a running pipelined training."""

    program: Program
    first: int  # first iteration
    last: int  # one past the last iteration
    actors: Sequence[Actor]
    port: ReplayPort
    learner: Learner
    inputs: UpdateInputs
    workers: Workers
    recorder: MetricsRecorder
    restarts: Restarts
    rollouts: Sequence[Queue]  # indexed by actor
    batches: Queue
    on_publish: Callable[[Version], None] | None = None

    def collect(self, number: int, version: Version, iteration: int) -> None:
        """Collect an actor's rollout of an iteration into its queue."""
        with self.workers.working("collect"):
            rollout = self._collected(self.actors[number], version, iteration)
        self.rollouts[number].put(rollout)

    def _collected(self, actor: Actor, version: Version, iteration: int) -> Rollout:
        """Re-collect after a restart; a failed actor publishes no rollout."""
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
                    error.add_note(f"the actor could not be restarted: {what}")
                    raise error from why

    def insert(self, rollout: Rollout) -> None:
        """Add transitions to the replay buffer."""
        with self.workers.working("insert"):
            self.port.add(rollout.transitions, rollout.priorities)

    def sample(self, key: Array, beta: float) -> tuple[LearnerBatch, Sample]:
        """Sample a batch to the learner's devices; return the rest for the priority update."""
        with self.workers.working("sample"):
            sample = self.port.sample(key, beta, self.inputs.gamma)
            return self.learner.load(sample), without_batch(sample)

    def learn(self, batch: LearnerBatch, key: np.ndarray) -> tuple[Array, dict[str, np.ndarray]]:
        """Update the agent; return priorities and metrics."""
        with self.workers.working("learn"):
            return self.learner.learn(batch, key)

    def update(self, sample: Sample, priorities: Array) -> None:
        """Update priorities in the replay buffer."""
        with self.workers.working("update"):
            self.port.update(sample, priorities)

    def publish(self) -> Version:
        """Publish a copy of the newest policy."""
        with self.workers.working("sync"):
            version = self.learner.publish()
            if self.on_publish is not None:
                self.on_publish(version)
            return version

    @property
    def updates(self) -> int:
        """Updates from the start of the training to its end."""
        return updates_until(self.program.schedule, self.last - 1)

    def learns(self, iteration: int) -> bool:
        """Return whether an iteration has updates."""
        return iteration >= self.program.schedule.warmup


def updates_until(schedule: Schedule, iteration: int) -> int:
    """Count the updates until the end of an iteration, in program order."""
    return schedule.updates * max(0, iteration + 1 - schedule.warmup)


@functools.lru_cache(maxsize=CACHED)
def metric_names(program: Program) -> list[str]:
    """Return the names of the agent's metrics."""
    step = example(program.env, program.agent)

    def learn() -> dict[str, Json]:
        def one(leaf: PyTree) -> Array:
            return jnp.zeros((1, *leaf.shape), leaf.dtype)

        agent: Agent = program.agent
        observation, action, reward, extras = jax.tree.map(
            one, (step.observation, step.action, step.reward, step.extras)
        )
        batch = Batch(observation, action, reward, reward, observation, extras)
        state = agent.init(jax.random.key(0))
        return agent.learn(state, batch, reward, jax.random.key(0))[1].metrics

    return list(jax.eval_shape(learn))
