"""What `replay.py` times from Python: one call to sample, one to update, of each system."""

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from common import warn
from replay_memories import ALPHA, Memory, Problem, make_priorities

CPPRB, TORCHRL = "cpprb", "torchrl"
KEYS = 64  # that calls go through in turn


class Draws(NamedTuple):
    """Items that were drawn, to be checked; leaves [M]."""

    indices: np.ndarray
    rewards: np.ndarray
    odds: np.ndarray  # probabilities, or what is proportional to them
    exact: bool  # they are probabilities


class Caller(Protocol):
    """A full memory that is called from Python."""

    def sample(self) -> None:
        """Draw a batch with weights, and wait for it."""

    def update(self) -> None:
        """Set new priorities of the batch that was drawn last, and wait for it."""

    def draws(self, num: int) -> Draws:
        """At least `num` items, drawn batch after batch."""


class Compiled:
    """A memory of pure functions, each compiled; the state is donated to the update."""

    def __init__(self, name: str, memory: Memory, problem: Problem, batch_size: int) -> None:
        """Copies the full state."""
        self._memory, self._batch_size = memory, batch_size
        self._state = problem.full(name, memory)
        self._sample, self._update = (
            jax.jit(memory.sample),
            jax.jit(memory.update, donate_argnums=0),
        )
        self._keys = itertools.cycle(list(jax.random.split(jax.random.key(9), KEYS)))
        self._noise = itertools.cycle(jnp.asarray(make_priorities((KEYS, batch_size), 10)))
        self.sample()

    def sample(self) -> None:
        """Draw."""
        self._drawn = jax.block_until_ready(self._sample(self._state, next(self._keys)))

    def update(self) -> None:
        """Set priorities."""
        state = self._update(self._state, self._drawn, next(self._noise))
        self._state = jax.block_until_ready(state)

    def draws(self, num: int) -> Draws:
        """Draw many."""
        keys = jax.random.split(jax.random.key(11), -(-num // self._batch_size))
        draw = jax.jit(
            lambda state, keys: jax.lax.map(lambda k: self._memory.sample(state, k), keys)
        )
        drawn = draw(self._state, keys)
        seen = drawn.indices, drawn.items["reward"], drawn.probabilities
        return Draws(*(np.asarray(x).reshape(-1) for x in seen), exact=True)


class Cpprb:
    """cpprb's PrioritizedReplayBuffer."""

    def __init__(self, problem: Problem, batch_size: int) -> None:
        """Fills it."""
        import cpprb

        fields = {
            name: {"shape": leaf.shape[1:] or 1, "dtype": leaf.dtype}
            for name, leaf in problem.items.items()
        }
        self._batch_size = batch_size
        self._buffer = cpprb.PrioritizedReplayBuffer(problem.capacity, fields, alpha=ALPHA, eps=0.0)
        self._buffer.add(**problem.items, priorities=problem.priorities)
        self._noise = itertools.cycle(make_priorities((KEYS, batch_size), 10))
        self.sample()

    def sample(self) -> None:
        """Draw."""
        self._drawn = self._buffer.sample(self._batch_size, beta=1.0)

    def update(self) -> None:
        """Set priorities."""
        self._buffer.update_priorities(self._drawn["indexes"], next(self._noise))

    def draws(self, num: int) -> Draws:
        """Draw many."""
        seen = []
        for _ in range(-(-num // self._batch_size)):
            self.sample()
            wanted = (self._drawn[name] for name in ("indexes", "reward", "weights"))
            seen.append([leaf.ravel().copy() for leaf in wanted])  # it writes into them again
        indices, rewards, weights = (np.concatenate(x) for x in zip(*seen, strict=True))
        return Draws(indices, rewards, 1 / weights, exact=False)


class Torchrl:
    """torchrl's TensorDictPrioritizedReplayBuffer over tensors in memory."""

    def __init__(self, problem: Problem, batch_size: int) -> None:
        """Fills it."""
        import torch
        import torchrl._torchrl  # noqa: F401 - its trees, without which torchrl imports all the same
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer

        self._batch_size = batch_size
        self._buffer = TensorDictPrioritizedReplayBuffer(
            alpha=ALPHA,
            beta=1.0,
            storage=LazyTensorStorage(problem.capacity),
            batch_size=batch_size,
        )
        items = {name: torch.from_numpy(leaf) for name, leaf in problem.items.items()}
        self._buffer.extend(TensorDict(items, batch_size=[problem.capacity]))
        priorities = torch.from_numpy(problem.priorities)
        self._buffer.update_priority(torch.arange(problem.capacity), priorities)
        noise = torch.from_numpy(make_priorities((KEYS, batch_size), 10))
        self._noise = itertools.cycle(noise.unbind())
        self.sample()

    def sample(self) -> None:
        """Draw."""
        self._drawn = self._buffer.sample()

    def update(self) -> None:
        """Set priorities."""
        self._buffer.update_priority(self._drawn["index"], next(self._noise))

    def draws(self, num: int) -> Draws:
        """Draw many."""
        seen = []
        for _ in range(-(-num // self._batch_size)):
            self.sample()
            weight = "_weight" if "_weight" in self._drawn.keys() else "priority_weight"  # noqa: SIM118
            seen.append([self._drawn[name].numpy() for name in ("index", "reward", weight)])
        indices, rewards, weights = (np.concatenate(x) for x in zip(*seen, strict=True))
        return Draws(indices, rewards, 1 / weights, exact=False)


RIVALS: dict[str, Callable[[Problem, int], Caller]] = {CPPRB: Cpprb, TORCHRL: Torchrl}


def make_rivals(names: Iterable[str], problem: Problem, batch_size: int) -> dict[str, Caller]:
    """The rivals of these names; of those that do not import the user is told."""
    made = {}
    for name in names:
        try:
            made[name] = RIVALS[name](problem, batch_size)
        except ImportError as error:
            warn(f"{name} is left out: {error} (see the extra `rivals` in pyproject.toml)")
    return made
