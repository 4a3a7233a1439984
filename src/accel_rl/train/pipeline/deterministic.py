"""Workers of the deterministic executor: steps overlap as far as the schedule's lags allow.

Actor, buffer and learner each run their own steps in program order, and pass on exactly what the
other steps need. So results do not depend on timing.
"""

from collections import deque
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train.pipeline.actors import Published, Version
from accel_rl.train.pipeline.context import Context, updates_until
from accel_rl.train.pipeline.learner import prioritised
from accel_rl.train.pipeline.workers import Queue
from accel_rl.train.state import TrainState
from accel_rl.types import PyTree


class PendingUpdate(NamedTuple):
    """Priority update that is not yet applied, or those of a group of updates."""

    sample: PyTree  # a Sample without its batch; of a group, leaves [n, ...]
    priorities: PyTree  # [B] float32, or [n, B]; None while the learner computes them
    valid: bool  # False: a placeholder, before there were as many updates

    def singles(self) -> list["PendingUpdate"]:
        """Split the updates of a group."""
        if not self.valid or self.priorities.ndim == 1:
            return [self]
        pair = self.sample, self.priorities
        return [
            PendingUpdate(sample, priorities, True)
            for sample, priorities in _each(pair, len(self.priorities))
        ]


class DeterministicWorkers:
    """Three workers: the only actor, the buffer and the learner."""

    def __init__(self, context: Context, state: TrainState) -> None:
        self._context, self._state = context, state
        self._policies = Queue(context.workers, items=_policies(context, state))
        self._prioritised = prioritised(context.program)
        self._priorities = Queue(context.workers)
        # Without a prioritised sampler nothing waits for priorities: only the last are kept, for
        # the final state.
        lag = context.program.schedule.priority_lag
        self._pending = deque(_pending(context, state), None if self._prioritised else lag)
        self._last: deque[Any] = deque(maxlen=lag)

    def start(self) -> None:
        """Start the workers."""
        for name, work in (
            ("actor", self._act),
            ("buffer", self._insert_and_sample),
            ("learner", self._learn),
        ):
            self._context.workers.start(name, work)

    def delayed(self) -> tuple[PyTree, PyTree]:
        """Return the delayed policies and priorities of the final state.

        A replay port cannot hold pending updates, so they are applied.
        """
        context, policies = self._context, [each.published.policy for each in self._policies.rest()]
        if self._state.delayed_priorities is None:
            for each in self._pending:
                if each.valid:
                    context.port.update(each.sample, each.priorities)
            return _stacked(policies), None
        if not self._prioritised:
            self._pending = deque(self._unapplied())
        pending = [(each.sample, each.priorities, jnp.bool_(each.valid)) for each in self._pending]
        return _stacked(policies), _stacked(pending)

    def _unapplied(self) -> list[PendingUpdate]:
        """Return the last updates, as many as the lag, where nothing waited for priorities."""
        missing = sum(each.valid and each.priorities is None for each in self._pending)
        known = iter(list(self._last)[len(self._last) - missing :])
        singles: list[PendingUpdate] = []
        for pending in self._pending:
            if pending.valid and pending.priorities is None:
                pending = pending._replace(priorities=next(known))
            singles += pending.singles()
        return singles[-self._context.program.schedule.priority_lag :]

    def _act(self) -> None:
        for iteration in range(self._context.first, self._context.last):
            self._context.collect(0, self._policies.get(), iteration)

    def _insert_and_sample(self) -> None:
        context = self._context
        for iteration in range(context.first, context.last):
            if context.learns(iteration):
                if not context.port.can_sample():
                    raise ValueError(
                        "learning_starts must be larger, or the program's n_step smaller: the "
                        "buffer cannot be sampled yet when learning starts, and only this training "
                        f"adds to it; got {context.program.schedule.learning_starts}"
                    )
                keys, beta = context.inputs.sampling(iteration)
                for key in keys:
                    batch, sample = context.sample(key, beta)
                    context.batches.put(batch)
                    self._pending.append(PendingUpdate(sample, None, True))
                    if self._prioritised:
                        self._apply(self._pending.popleft())
            rollout = context.rollouts[0].get()
            context.insert(rollout)
            age = updates_until(context.program.schedule, iteration) - rollout.updates
            context.recorder.inserted(iteration, rollout.episodes, [age])
        if self._prioritised:
            self._pending = deque(self._complete(each) for each in self._pending)

    def _apply(self, pending: PendingUpdate) -> None:
        if pending.valid:
            self._context.update(pending.sample, self._complete(pending).priorities)

    def _complete(self, pending: PendingUpdate) -> PendingUpdate:
        """Add the priorities; wait for them if the learner still computes them."""
        if pending.valid and pending.priorities is None:
            return pending._replace(priorities=self._priorities.get())
        return pending

    def _learn(self) -> None:
        context = self._context
        lag, version = context.program.schedule.priority_lag, context.learner.version
        for iteration in range(context.first, context.last):
            metrics: list[dict[str, np.ndarray]] = []
            ages: list[int] = []
            if context.learns(iteration):
                for key in context.inputs.learning(iteration):
                    before = context.learner.updates
                    priorities, found = context.learn(context.batches.get(), key)
                    if self._prioritised:
                        ages.append(min(lag, before))
                        self._priorities.put(priorities)
                    else:
                        ages += [0] * (context.learner.updates - before)
                        self._last.append(priorities)
                    metrics.append(found)
                version = context.publish()
            self._policies.put(version)
            context.recorder.learned(iteration, metrics, ages)


def _policies(context: Context, state: TrainState) -> list[Version]:
    """Return the policies of the first iterations."""
    schedule, critics = context.program.schedule, context.learner.version.published.critics
    first = context.first - schedule.policy_lag
    return [
        Version(Published(policy, critics), updates_until(schedule, first + n))
        for n, policy in enumerate(_each(state.delayed_policies, schedule.policy_lag))
    ]


def _pending(context: Context, state: TrainState) -> list[PendingUpdate]:
    """Return the pending updates of a state, priority_lag of them."""
    lag = context.program.schedule.priority_lag
    if state.delayed_priorities is None:
        return [PendingUpdate(None, None, False)] * lag
    return [
        PendingUpdate(sample, values, bool(valid))
        for sample, values, valid in _each(state.delayed_priorities, lag)
    ]


def _each(stacked: PyTree, length: int) -> list[PyTree]:
    return [jax.tree.map(lambda leaf, n=n: leaf[n], stacked) for n in range(length)]


def _stacked(items: list[PyTree]) -> PyTree:
    """Stack items to leaves [length, ...] on the last item's device; None without items."""
    if not items:
        return None
    device = next(iter(jax.tree.leaves(items[-1])[0].devices()))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *jax.device_put(items, device))
