"""The pipeline's asynchronous mode: each worker goes on as soon as it may.

Actors use the newest policy there is. An actor may begin an iteration up to `queue_size` before the
learner has ended it; the learner never begins one before what was collected until then is in the
memory. So there are at most as many updates for what was inserted as the schedule says, fewer by at
most queue_size iterations, and no policy is older than queue_size iterations of updates when its
transitions are inserted.
"""

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train import delay
from accel_rl.train.actors import Rollout, stopped
from accel_rl.train.groups import prioritised
from accel_rl.train.job import Job
from accel_rl.train.placement import placed
from accel_rl.train.queues import Counter, Queue
from accel_rl.train.state import TrainState


class Asynchronous:
    """Workers: the actors, and one each for inserting, sampling, learning, updating priorities.

    Args:
      job: has a queue of transitions for each actor.
      state: from which it starts.
      queue_size: see above.
      device: where the transitions of several actors are put together.
    """

    def __init__(self, job: Job, state: TrainState, queue_size: int, device: jax.Device) -> None:
        schedule, workers = job.program.schedule, job.workers
        self._state = state
        self._job, self._size, self._device = job, queue_size, device
        self._inserted = Counter(workers, job.first)
        self._learned = Counter(workers, max(job.first, schedule.warmup))
        self._applied = Counter(workers, job.learner.updates)
        self._priorities = Queue(workers, queue_size * schedule.updates)
        self._prioritised = prioritised(job.program)
        axis = 0 if schedule.rollout == 1 else 1
        self._join = jax.jit(
            lambda parts: jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis), *parts)
        )

    def start(self) -> None:
        """Starts the workers; none updates priorities that nothing depends on."""
        workers, actors = self._job.workers, self._job.actors
        for number in range(len(actors)):
            name = "actor" if len(actors) == 1 else f"actor_{number}"
            workers.start(name, functools.partial(self._act, number))
        if actors:
            workers.start("inserter", self._insert)
        workers.start("sampler", self._sample)
        workers.start("learner", self._learn)
        if self._prioritised:
            workers.start("updater", self._update)

    def rest(self) -> tuple[Any, Any]:
        """Policies and late updates of priorities of the state at the end.

        All updates were applied by then, and from there on actors begin with the newest policy.
        """
        newest, lag = (
            self._job.learner.version.published.policy,
            self._job.program.schedule.policy_lag,
        )
        late = self._state.late
        if late is not None:
            late = (late[0], late[1], jnp.zeros_like(late[2]))
        return delay.start(newest, lag), late

    def _act(self, number: int) -> None:
        job = self._job
        for iteration in range(job.first, job.last):
            self._learned.wait_for(iteration - self._size + 1)
            job.collect(number, job.learner.version, iteration)

    def _insert(self) -> None:
        job = self._job
        for iteration in range(job.first, job.last):
            parts = [queue.get() for queue in job.rollouts]
            ages = [job.learner.updates - part.updates for part in parts]
            job.insert(self._together(parts))
            self._inserted.advance(iteration + 1)
            episodes = jax.tree.map(lambda *each: sum(each), *(part.episodes for part in parts))
            job.ledger.inserted(iteration, episodes, ages)

    def _sample(self) -> None:
        job = self._job
        for iteration in filter(job.learns, range(job.first, job.last)):
            keys, beta = job.drawing.sampling(iteration)
            if job.actors:
                self._inserted.wait_for(iteration)
                if iteration == max(job.first, job.program.schedule.warmup):
                    self._warn_if_empty()
            for key in keys:
                applied = self._applied.value
                job.batches.put((*job.sample(key, beta), applied))

    def _warn_if_empty(self) -> None:
        if not self._job.port.can_sample():
            warnings.warn(
                "the memory cannot be sampled when learning starts: the training waits for others "
                "to add to it",
                stacklevel=2,
            )

    def _learn(self) -> None:
        job = self._job
        for iteration in range(job.first, job.last):
            metrics: list[dict[str, np.ndarray]] = []
            ages: list[int] = []
            if job.learns(iteration):
                for key in job.drawing.learning(iteration):
                    lesson, sample, applied = job.batches.get()
                    before = job.learner.updates
                    priorities, found = job.learn(lesson, key)
                    if self._prioritised:
                        ages.append(before - applied)
                        self._priorities.put((sample, priorities))
                    else:
                        ages += [0] * (job.learner.updates - before)
                    metrics.append(found)
                job.publish()
                self._learned.advance(iteration + 1)
            if not job.actors:
                job.ledger.inserted(iteration, stopped(0, 0, 0), [])
            job.ledger.learned(iteration, metrics, ages)

    def _update(self) -> None:
        job = self._job
        for number in range(self._applied.value, job.updates):
            job.update(*self._priorities.get())
            self._applied.advance(number + 1)

    def _together(self, parts: list[Rollout]) -> Rollout:
        if len(parts) == 1:
            return parts[0]
        fields = [(part.transitions, part.priorities) for part in parts]
        transitions, priorities = self._join(placed(fields, self._device))
        return parts[0]._replace(transitions=transitions, priorities=priorities)
