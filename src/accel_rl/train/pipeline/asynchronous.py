"""Workers of the asynchronous executor: each continues as soon as its inputs are there.

Actors use the newest policy. An actor may run up to `queue_size` iterations ahead of the learner;
the learner begins an iteration only when the transitions of all earlier ones are in the buffer. So
the number of updates is at most what the schedule says for the transitions inserted, and at most
queue_size iterations fewer; and when its transitions are inserted, no policy is older than
queue_size iterations of updates.
"""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train.pipeline.actors import Rollout, host_episodes
from accel_rl.train.pipeline.context import Context
from accel_rl.train.pipeline.learner import prioritised
from accel_rl.train.pipeline.placement import place
from accel_rl.train.pipeline.workers import Counter, Queue
from accel_rl.train.state import TrainState, fill_fifo
from accel_rl.types import PyTree


class AsynchronousWorkers:
    """One worker for each actor, and one each to insert, sample, learn and update priorities.

    Args:
      context: has a queue of rollouts for each actor.
      state: at the start.
      queue_size: iterations by which actors may be ahead of the learner.
      device: where rollouts of several actors are concatenated.
    """

    def __init__(
        self, context: Context, state: TrainState, queue_size: int, device: jax.Device
    ) -> None:
        schedule, workers = context.program.schedule, context.workers
        self._state = state
        self._context, self._size, self._device = context, queue_size, device
        self._inserted = Counter(workers, context.first)
        self._learned = Counter(workers, max(context.first, schedule.warmup))
        self._applied = Counter(workers, context.learner.updates)
        self._priorities = Queue(workers, queue_size * schedule.updates)
        self._prioritised = prioritised(context.program)
        axis = 0 if schedule.rollout == 1 else 1
        self._join = jax.jit(
            lambda parts: jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis), *parts)
        )

    def start(self) -> None:
        """Start the workers; without a prioritised sampler none updates priorities."""
        workers, actors = self._context.workers, self._context.actors
        for number in range(len(actors)):
            name = "actor" if len(actors) == 1 else f"actor_{number}"
            workers.start(name, functools.partial(self._act, number))
        if actors:
            workers.start("inserter", self._insert)
        workers.start("sampler", self._sample)
        workers.start("learner", self._learn)
        if self._prioritised:
            workers.start("updater", self._update)

    def delayed(self) -> tuple[PyTree, PyTree]:
        """Return the delayed policies and priorities of the final state.

        All priority updates have been applied, and actors continue with the newest policy.
        """
        newest, lag = (
            self._context.learner.version.published.policy,
            self._context.program.schedule.policy_lag,
        )
        delayed = self._state.delayed_priorities
        if delayed is not None:
            delayed = (delayed[0], delayed[1], jnp.zeros_like(delayed[2]))
        return fill_fifo(newest, lag), delayed

    def _act(self, number: int) -> None:
        context = self._context
        for iteration in range(context.first, context.last):
            # At most `size` iterations ahead of the learner, which bounds the age of policies.
            self._learned.wait_for(iteration - self._size + 1)
            context.collect(number, context.learner.version, iteration)

    def _insert(self) -> None:
        context = self._context
        for iteration in range(context.first, context.last):
            parts = [queue.get() for queue in context.rollouts]
            ages = [context.learner.updates - part.updates for part in parts]
            context.insert(self._together(parts))
            self._inserted.advance(iteration + 1)
            episodes = jax.tree.map(lambda *each: sum(each), *(part.episodes for part in parts))
            context.recorder.inserted(iteration, episodes, ages)

    def _sample(self) -> None:
        context = self._context
        for iteration in filter(context.learns, range(context.first, context.last)):
            keys, beta = context.inputs.sampling(iteration)
            if context.actors:
                self._inserted.wait_for(iteration)
                if iteration == max(context.first, context.program.schedule.warmup):
                    self._warn_if_empty()
            for key in keys:
                applied = self._applied.value
                context.batches.put((*context.sample(key, beta), applied))

    def _warn_if_empty(self) -> None:
        if not self._context.port.can_sample():
            warnings.warn(
                "the buffer cannot be sampled when learning starts: the training waits for others "
                "to add to it",
                stacklevel=2,
            )

    def _learn(self) -> None:
        context = self._context
        for iteration in range(context.first, context.last):
            metrics: list[dict[str, np.ndarray]] = []
            ages: list[int] = []
            if context.learns(iteration):
                for key in context.inputs.learning(iteration):
                    batch, sample, applied = context.batches.get()
                    before = context.learner.updates
                    priorities, found = context.learn(batch, key)
                    if self._prioritised:
                        ages.append(before - applied)
                        self._priorities.put((sample, priorities))
                    else:
                        ages += [0] * (context.learner.updates - before)
                    metrics.append(found)
                context.publish()
                self._learned.advance(iteration + 1)
            if not context.actors:
                context.recorder.inserted(iteration, host_episodes(0, 0, 0), [])
            context.recorder.learned(iteration, metrics, ages)

    def _update(self) -> None:
        context = self._context
        for number in range(self._applied.value, context.updates):
            context.update(*self._priorities.get())
            self._applied.advance(number + 1)

    def _together(self, parts: list[Rollout]) -> Rollout:
        if len(parts) == 1:
            return parts[0]
        fields = [(part.transitions, part.priorities) for part in parts]
        transitions, priorities = self._join(place(fields, self._device))
        return parts[0]._replace(transitions=transitions, priorities=priorities)
