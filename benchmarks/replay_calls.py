"""What `replay.py` times from Python: one call to sample, one to update, of each system."""

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from common import System, warn
from interpreter import Interpreter
from replay_memories import ALPHA, Memory, Problem, make_priorities

CPPRB, TORCHRL = "cpprb", "torchrl"
KEYS = 64  # that calls go through in turn
SCRIPT = Path(__file__).resolve().with_name("replay_torchrl.py")
HOW = "make rivals, or give --rivals PYTHON, an interpreter that has it"


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
        """Copy the full state."""
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
        """Fill it."""
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
    """torchrl's buffer in a process of another interpreter, which times its own calls."""

    def __init__(
        self, interpreter: Interpreter, problem: Problem, batch_size: int, device: str = "cpu"
    ) -> None:
        """Fill it; what was filled before in this process is gone.

        Args:
          interpreter: that process.
          problem: what it holds.
          batch_size: items of a batch.
          device: "cpu", or "cuda" for a tree and items there.

        Raises:
          RuntimeError: if the process ended.
        """
        self._interpreter = interpreter
        noise = make_priorities((KEYS, batch_size), 10)
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            np.savez(file, priorities=problem.priorities, noise=noise, **problem.items)
            file.flush()
            request = {"fill": file.name, "batch_size": batch_size, "alpha": ALPHA}
            interpreter.ask(request | {"device": device})

    def sample(self) -> None:
        """Draw."""
        self.seconds(("sample",), 1)

    def update(self) -> None:
        """Set priorities."""
        self.seconds(("update",), 1)

    def seconds(self, calls: Sequence[str], repeats: int) -> tuple[float, float]:
        """CPU and wall seconds of these calls, the mean over repeats."""
        answer = self._interpreter.ask({"calls": list(calls), "repeats": repeats})
        return answer["cpu"], answer["wall"]

    def draws(self, num: int) -> Draws:
        """Draw many."""
        answer = self._interpreter.ask({"draws": num})
        rewards = np.asarray(answer["rewards"], np.float32)
        weights = np.asarray(answer["weights"])
        return Draws(np.asarray(answer["indices"]), rewards, 1 / weights, exact=False)


Make = Callable[[Problem, int], Caller]
"""make(problem, batch_size): a full memory."""


def system_of(caller: Caller, *calls: str) -> System:
    """Return the calls of a caller for `interleave`, one after the other."""

    def run() -> None:
        for call in calls:
            getattr(caller, call)()

    if isinstance(caller, Torchrl):
        return System(run, 1, functools.partial(caller.seconds, calls))
    return System(run, 1)


def make_rivals(makers: Mapping[str, Make], problem: Problem, batch_size: int) -> dict[str, Caller]:
    """Return the rivals of these names; of those that are not there the user is told."""
    made = {}
    for name, make in makers.items():
        try:
            made[name] = make(problem, batch_size)
        except (ImportError, RuntimeError) as error:
            warn(f"{name} is left out: {error}")
    return made


@contextlib.contextmanager
def rivals(python: str | None) -> Iterator[tuple[dict[str, Make], dict[str, str]]]:
    """Return makers of the rivals, and versions of those in other environments.

    Args:
      python: the interpreter that has torchrl; None: torchrl is left out, and the user told.
    """
    makers: dict[str, Make] = {CPPRB: Cpprb}
    if python is None:
        warn(f"{TORCHRL} is left out: {HOW}")
        yield makers, {}
        return
    try:
        interpreter = Interpreter(python, SCRIPT)
    except (OSError, RuntimeError) as error:
        warn(f"{TORCHRL} is left out: {error}; {HOW}")
        yield makers, {}
        return
    try:
        yield makers | {TORCHRL: functools.partial(Torchrl, interpreter)}, interpreter.greeting
    finally:
        interpreter.close()
