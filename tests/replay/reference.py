"""A replay buffer as lists and loops, after docs and papers: what ours must do, not how.

Nothing is ever forgotten here: `Memory` keeps every step since the first, and works out what a
ring of so many slots would still hold. Items are named (t, env): the t-th step of an environment.
"""

import collections
import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass
class Step:
    """One step of one environment; the fields of `types.Transition`."""

    observation: Any
    action: Any
    reward: float
    discount: float
    truncated: bool
    next_observation: Any

    @property
    def stops(self):
        """Whether its episode goes no further."""
        return self.truncated or self.discount == 0


class Memory:
    """What a ring of `capacity` slots holds, in rows of one step of every environment.

    An item is complete once the `window` steps from its own on were added, and until there are
    `history` steps fewer in the ring before its own than it may need.
    """

    def __init__(
        self, capacity, num_envs=1, window=1, history=0, *, alpha=1.0, is_prioritised=True
    ):
        self.capacity, self.num_envs = capacity, num_envs
        self.rows = capacity // num_envs
        self.window, self.history = window, history
        self.alpha, self.is_prioritised = alpha, is_prioritised
        self.log = [[] for _ in range(num_envs)]  # log[env][t], whatever was added
        self.weights = {}  # of each item that was ever added

    def complete(self):
        """Items that can be read whole, oldest first."""
        added = len(self.log[0])
        oldest = max(0, added - (self.rows - self.history))
        return [
            (t, env) for t in range(oldest, added - self.window + 1) for env in range(self.num_envs)
        ]

    def slot(self, item):
        """Where an item lies."""
        t, env = item
        return t % self.rows * self.num_envs + env

    def generation(self, item):
        """How often its slot had been written before."""
        return item[0] // self.rows

    def item_at(self, slot):
        """The last item that was written to a slot; None if none was."""
        row, env = divmod(slot, self.num_envs)
        return max(((t, env) for t in range(row, len(self.log[0]), self.rows)), default=None)

    def highest(self):
        """The largest weight of a complete item, 1 if there is none above 0."""
        return max((self.weights[item] for item in self.complete()), default=0.0) or 1.0

    def add(self, rows, priorities=None, closed=None):
        """Add rows[step][env]; priorities and closed likewise."""
        weight = self.highest()
        for k, row in enumerate(rows):
            for env, item in enumerate(row):
                mine = weight if priorities is None else self.weight(priorities[k][env], weight)
                if closed is not None and closed[k][env]:
                    mine = 0.0
                self.weights[len(self.log[env]), env] = mine
                self.log[env].append(item)

    def weight(self, priority, unsound):
        """The weight of a priority, `unsound` if it is none."""
        if not self.is_prioritised or not (0 <= priority < np.inf):
            return unsound
        return float(priority) ** self.alpha if priority > 0 else 0.0

    def update(self, slots, generations, priorities, where=True):
        """One after the other, so that the last of several for one item stays."""
        where = np.broadcast_to(where, np.shape(slots))
        for slot, generation, priority, chosen in zip(
            slots, generations, priorities, where, strict=True
        ):
            item = self.item_at(int(slot))
            if chosen and item in self.complete() and self.generation(item) == generation:
                self.weights[item] = self.weight(priority, self.weights[item])

    def probabilities(self):
        """Slot to probability, of items that may be drawn."""
        weights = {self.slot(i): self.weights[i] for i in self.complete() if self.weights[i] > 0}
        return {slot: weight / sum(weights.values()) for slot, weight in weights.items()}


def target(log, t, n, gamma, has_final=True):
    """The n-step target of step t of one environment's log: reward, discount and steps k.

    Without final observations a truncated step is never the last of a target, so that one which
    would end there ends a step before, at an observation that there is.
    """
    steps = []
    for step in log[t : t + n]:
        if step.truncated and not has_final and steps:
            break
        steps.append(step)
        if step.stops:
            break
    k = len(steps)
    reward = sum(gamma**j * step.reward for j, step in enumerate(steps))
    return reward, 0.0 if steps[-1].discount == 0 else gamma**k, k


def after(log, t, has_final=True):
    """The observation that followed step t."""
    return log[t].next_observation if has_final else log[t + 1].observation


def stacks(log, depth):
    """For each step the newest `depth` observations, and the same after the step.

    As Gymnasium's FrameStackObservation: a reset fills the queue with the first observation.
    """
    before, following = [], []
    queue = collections.deque(maxlen=depth)
    fresh = True
    for step in log:
        queue.extend([step.observation] * (depth if fresh else 1))
        before.append(np.stack(queue))
        following.append(np.stack([*list(queue)[1:], step.next_observation]))
        fresh = step.stops
    return before, following


def sequence_validity(log, t, length):
    """Of steps t .. t + length - 1: which belong to the episode of the first."""
    valid, inside = [], True
    for step in log[t : t + length]:
        valid.append(inside)
        inside = inside and not step.stops
    return valid


def play(rng, steps, num_envs, *, end=0.15, truncate=0.1, shape=(), dtype=np.float32):
    """Logs of random episodes, [env][step]; observations count up, so that each is told apart."""
    logs = []
    for env in range(num_envs):
        count = iter(range(10_000))

        def observe(env=env, count=count):
            return np.full(shape, env * 100 + next(count), dtype)

        log, observation = [], observe()
        for _ in range(steps):
            ended = rng.random() < end
            truncated = bool(not ended and rng.random() < truncate)
            following = observe()
            log.append(
                Step(
                    observation,
                    np.int32(rng.integers(4)),
                    np.float32(rng.normal()),
                    np.float32(not ended),
                    truncated,
                    following,
                )
            )
            observation = observe() if ended or truncated else following
        logs.append(log)
    return logs
