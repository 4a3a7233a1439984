"""The pipeline's deterministic mode: the order of the program, as far as its lags let it overlap.

An actor, the memory and the learner each keep to the program's order of their own steps, and hand
on exactly what the others' steps need. So nothing depends on who is faster.
"""

from collections import deque
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train.actors import Published, Version
from accel_rl.train.groups import prioritised
from accel_rl.train.job import Job, updates_until
from accel_rl.train.queues import Queue
from accel_rl.train.state import TrainState


class Late(NamedTuple):
    """An update of priorities that is not yet applied, or those of a group of updates."""

    sample: Any  # a Sample without its batch; of a group, leaves [n, ...]
    priorities: Any  # [B] float32, or [n, B]; None while the learner is at it
    there: bool  # False: an empty place, from before there were as many updates

    def singles(self) -> list["Late"]:
        """Each update of the group."""
        if not self.there or self.priorities.ndim == 1:
            return [self]
        pair = self.sample, self.priorities
        return [
            Late(sample, priorities, True)
            for sample, priorities in _each(pair, len(self.priorities))
        ]


class Lockstep:
    """Three workers: an actor, the memory, the learner.

    Args:
      job: has one actor.
      state: from which it starts.
    """

    def __init__(self, job: Job, state: TrainState) -> None:
        self._job, self._state = job, state
        self._policies = Queue(job.workers, items=_policies(job, state))
        self._prioritised = prioritised(job.program)
        self._priorities = Queue(job.workers)
        # Where they change nothing, the last are kept for the state at the end, and no others.
        lag = job.program.schedule.priority_lag
        self._late = deque(_late(job, state), None if self._prioritised else lag)
        self._last: deque[Any] = deque(maxlen=lag)

    def start(self) -> None:
        """Starts the workers."""
        for name, work in (
            ("actor", self._act),
            ("memory", self._remember),
            ("learner", self._learn),
        ):
            self._job.workers.start(name, work)

    def rest(self) -> tuple[Any, Any]:
        """Policies and late updates of priorities of the state at the end.

        A port, which has no place for late updates, is given them.
        """
        job, policies = self._job, [each.published.policy for each in self._policies.rest()]
        if self._state.late is None:
            for each in self._late:
                if each.there:
                    job.port.update(each.sample, each.priorities)
            return _stacked(policies), None
        if not self._prioritised:
            self._late = deque(self._unapplied())
        late = [(each.sample, each.priorities, jnp.bool_(each.there)) for each in self._late]
        return _stacked(policies), _stacked(late)

    def _unapplied(self) -> list[Late]:
        """The last updates, as many as the lag, where none was waited for."""
        missing = sum(late.there and late.priorities is None for late in self._late)
        known = iter(list(self._last)[len(self._last) - missing :])
        singles: list[Late] = []
        for late in self._late:
            if late.there and late.priorities is None:
                late = late._replace(priorities=next(known))
            singles += late.singles()
        return singles[-self._job.program.schedule.priority_lag :]

    def _act(self) -> None:
        for iteration in range(self._job.first, self._job.last):
            self._job.collect(0, self._policies.get(), iteration)

    def _remember(self) -> None:
        job = self._job
        for iteration in range(job.first, job.last):
            if job.learns(iteration):
                if not job.port.can_sample():
                    raise ValueError(
                        "learning_starts must be larger, or the program's n_step smaller: the "
                        "memory cannot be sampled yet when learning starts, and only this training "
                        f"adds to it; got {job.program.schedule.learning_starts}"
                    )
                keys, beta = job.drawing.sampling(iteration)
                for key in keys:
                    lesson, sample = job.sample(key, beta)
                    job.batches.put(lesson)
                    self._late.append(Late(sample, None, True))
                    if self._prioritised:
                        self._apply(self._late.popleft())
            rollout = job.rollouts[0].get()
            job.insert(rollout)
            age = updates_until(job.program.schedule, iteration) - rollout.updates
            job.ledger.inserted(iteration, rollout.episodes, [age])
        if self._prioritised:
            self._late = deque(self._complete(late) for late in self._late)

    def _apply(self, late: Late) -> None:
        if late.there:
            self._job.update(late.sample, self._complete(late).priorities)

    def _complete(self, late: Late) -> Late:
        """With its priorities, for which it waits if the learner is at it."""
        if late.there and late.priorities is None:
            return late._replace(priorities=self._priorities.get())
        return late

    def _learn(self) -> None:
        job = self._job
        lag, version = job.program.schedule.priority_lag, job.learner.version
        for iteration in range(job.first, job.last):
            metrics: list[dict[str, np.ndarray]] = []
            ages: list[int] = []
            if job.learns(iteration):
                for key in job.drawing.learning(iteration):
                    before = job.learner.updates
                    priorities, found = job.learn(job.batches.get(), key)
                    if self._prioritised:
                        ages.append(min(lag, before))
                        self._priorities.put(priorities)
                    else:
                        ages += [0] * (job.learner.updates - before)
                        self._last.append(priorities)
                    metrics.append(found)
                version = job.publish()
            self._policies.put(version)
            job.ledger.learned(iteration, metrics, ages)


def _policies(job: Job, state: TrainState) -> list[Version]:
    """What the first iterations act with."""
    schedule, critics = job.program.schedule, job.learner.version.published.critics
    first = job.first - schedule.policy_lag
    return [
        Version(Published(policy, critics), updates_until(schedule, first + n))
        for n, policy in enumerate(_each(state.policies, schedule.policy_lag))
    ]


def _late(job: Job, state: TrainState) -> list[Late]:
    """As many as the lag of priorities."""
    lag = job.program.schedule.priority_lag
    if state.late is None:
        return [Late(None, None, False)] * lag
    return [Late(sample, values, bool(there)) for sample, values, there in _each(state.late, lag)]


def _each(stacked: Any, length: int) -> list[Any]:
    return [jax.tree.map(lambda leaf, n=n: leaf[n], stacked) for n in range(length)]


def _stacked(items: list[Any]) -> Any:
    """Leaves [length, ...], on the last item's device; None of no items."""
    if not items:
        return None
    device = next(iter(jax.tree.leaves(items[-1])[0].devices()))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *jax.device_put(items, device))
