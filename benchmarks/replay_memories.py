"""The replay buffers that run inside compiled programs, in one form: accel_rl's and flashbax's.

Every memory holds the same items in the same slots, adds `ADDED` items at a time, and draws with
the exponent `ALPHA`.
"""

import importlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from common import warn

from accel_rl import replay
from accel_rl.replay import importance_weights

ADDED = 16  # items that one step adds: of so many environments
ALPHA = 0.6
OBSERVATION = 4
AUTO, TREE = "accel_rl auto", "accel_rl tree"
UNIFORM, FLASHBAX_UNIFORM = "accel_rl uniform", "flashbax uniform"
DOCUMENTED, REMEDY = "flashbax as documented", "flashbax with the remedy"
INTERFACE, INTERFACE_UNIFORM = "accel_rl.replay.flashbax", "accel_rl.replay.flashbax uniform"
AMPER_FR, AMPER_K = "accel_rl AMPER-fr", "accel_rl AMPER-k"
AMPER_MATCH, RANK = "accel_rl AMPER-fr, full match", "accel_rl rank-based"

# The library's samplers: by the name of the function in accel_rl.replay, and its options.
SAMPLERS: dict[str, tuple[str, dict[str, Any]]] = {
    AUTO: ("prioritised", {"form": "auto"}),
    TREE: ("prioritised", {"form": "tree"}),
    UNIFORM: ("uniform", {}),
    AMPER_FR: ("amper_fr", {}),
    AMPER_MATCH: ("amper_fr", {"form": "match"}),
    AMPER_K: ("amper_k", {}),
    RANK: ("rank_based", {}),
}


class Drawn(NamedTuple):
    """Sample of a draw: items [B], int32 slots, probabilities, importance-sampling weights."""

    items: Any
    indices: jax.Array
    probabilities: jax.Array
    weights: jax.Array
    ticket: Any  # what the memory's own update wants to see


class Memory(NamedTuple):
    """A memory's pure functions."""

    full: Callable[[Any, Any], Any]
    """full(items [capacity], priorities [capacity]): a state that holds them in this order."""

    add: Callable[[Any, Any], Any]
    """add(state, items [ADDED])"""

    sample: Callable[[Any, jax.Array], Drawn]
    """sample(state, key)"""

    update: Callable[[Any, Drawn, jax.Array], Any]
    """update(state, drawn, priorities [B])"""


def make_items(num: int, seed: int) -> dict[str, np.ndarray]:
    """Transitions of ten floats and an integer in five fields, leaves [num, ...]."""
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(scale=0.1, size=(num, *shape)).astype(np.float32)

    return {
        "observation": normal(OBSERVATION),
        "action": random.integers(4, size=num).astype(np.int32),
        "reward": normal(),
        "discount": (random.random(num) < 0.95).astype(np.float32),
        "next_observation": normal(OBSERVATION),
    }


def make_priorities(shape: tuple[int, ...], seed: int, law: str = "heavy") -> np.ndarray:
    """Priorities with a heavy tail (lognormal), or "even" ones, uniform up to 1."""
    random = np.random.default_rng(seed)
    draws = random.lognormal(sigma=1.5, size=shape) if law == "heavy" else 1 - random.random(shape)
    return draws.astype(np.float32)


class Problem:
    """Items and priorities that fill a memory, and the states of memories that hold them."""

    def __init__(self, capacity: int, law: str = "heavy") -> None:
        """Draws items, and priorities by a law of `make_priorities`."""
        if capacity % ADDED:
            raise ValueError(f"capacity must be a multiple of {ADDED}, got {capacity}")
        self.capacity, self.law = capacity, law
        self.items = make_items(capacity, 1)
        self.priorities = make_priorities((capacity,), 2, law)
        self.agreed: set[str] = set()  # systems that were seen to draw as they must
        self._states: dict[str, Any] = {}

    def full(self, name: str, memory: Memory) -> Any:
        """Return a new copy of the state of a full memory; states depend on the name alone."""
        if name not in self._states:
            state = jax.jit(memory.full)(self.items, self.priorities)
            self._states[name] = jax.block_until_ready(state)
        return jax.tree.map(jnp.copy, self._states[name])


def make_memories(names: Iterable[str], problem: Problem, batch_size: int) -> dict[str, Memory]:
    """Return the named replay buffers; warn of those that are absent."""
    made = {}
    for name in names:
        make = _ours if name in SAMPLERS else _flashbax
        memory = make(name, problem.capacity, batch_size)
        if memory is not None:
            made[name] = memory
    return made


def _ours(name: str, capacity: int, batch_size: int) -> Memory | None:
    function, options = SAMPLERS[name]
    if not hasattr(replay, function):
        warn(f"accel_rl.replay has no {function}: {name} is left out")
        return None
    sampler = getattr(replay, function)(**options)
    example = jax.tree.map(lambda leaf: leaf[0], make_items(1, 0))
    memory = replay.make(example, capacity, batch_size, sampler, num_envs=ADDED)

    def full(items: Any, priorities: Any) -> Any:
        rows = jax.tree.map(lambda x: x.reshape(-1, ADDED, *x.shape[1:]), (items, priorities))
        return memory.add(memory.init(), *rows)

    def sample(state: Any, key: jax.Array) -> Drawn:
        drawn = memory.sample(state, key)
        return Drawn(drawn.batch, drawn.indices, drawn.probabilities, drawn.weights, drawn)

    def update(state: Any, drawn: Drawn, priorities: jax.Array) -> Any:
        return memory.update(state, drawn.ticket, priorities)

    return Memory(full, memory.add, sample, update)


def _flashbax(name: str, capacity: int, batch_size: int) -> Memory | None:
    """One of flashbax's item buffers, or ours of the same interface, through public functions.

    As documented, what was sampled and the priorities that are set have nothing to do with each
    other, so that XLA copies the tree to read the probabilities from. The remedy, one line that its
    user may write, makes one depend on the other.
    """
    module = "accel_rl.replay.flashbax" if name in (INTERFACE, INTERFACE_UNIFORM) else "flashbax"
    try:
        flashbax = importlib.import_module(module)
    except ImportError:
        warn(f"{module} is not installed: {name} is left out")
        return None
    uniform = name in (FLASHBAX_UNIFORM, INTERFACE_UNIFORM)
    sizes = {"max_length": capacity, "min_length": 1, "sample_batch_size": batch_size}
    example = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), make_items(1, 0))
    if uniform:
        buffer: Any = flashbax.make_item_buffer(**sizes, add_batches=True)
    else:
        buffer = flashbax.make_prioritised_item_buffer(
            **sizes, add_batches=True, priority_exponent=ALPHA, device=jax.default_backend()
        )

    def full(items: Any, priorities: Any) -> Any:
        state = buffer.add(buffer.init(example), items)
        if uniform:
            return state
        return buffer.set_priorities(state, np.arange(capacity, dtype=np.int32), priorities)

    def sample(state: Any, key: jax.Array) -> Drawn:
        drawn = buffer.sample(state, key)
        if uniform:
            items = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), drawn.experience)
            odds = jnp.full(batch_size, 1 / capacity, jnp.float32)
            return Drawn(items, jnp.full(batch_size, -1), odds, jnp.ones(batch_size), None)
        weights = importance_weights(drawn.probabilities, 1.0)
        return Drawn(drawn.experience, drawn.indices, drawn.probabilities, weights, None)

    def update(state: Any, drawn: Drawn, priorities: jax.Array) -> Any:
        if uniform:
            return state
        if name == REMEDY:
            priorities = jnp.where(drawn.probabilities >= 0, priorities, 0)
        return buffer.set_priorities(state, drawn.indices, priorities)

    return Memory(full, buffer.add, sample, update)
