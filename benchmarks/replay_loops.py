"""What `replay.py` times inside compiled programs: loops of training steps over a full memory."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from replay_memories import (
    ADDED,
    OBSERVATION,
    Drawn,
    Memory,
    Problem,
    make_items,
    make_priorities,
)

HIDDEN = 32
GAMMA, STEP_SIZE = 0.99, 0.01

Body = Callable[[Any, Any], tuple[Any, Any]]


class Loop:
    """A compiled scan, whose carry is donated and goes on from call to call."""

    def __init__(self, body: Body, carry: Any, inputs: Any) -> None:
        """Compiles.

        Args:
          body: as `lax.scan` wants it.
          carry: is consumed.
          inputs: leaves [steps, ...].
        """
        self._carry, self._inputs = carry, inputs
        scan = jax.jit(lambda carry, inputs: jax.lax.scan(body, carry, inputs), donate_argnums=0)
        self.lowered = scan.lower(carry, inputs)
        self._scan = self.lowered.compile()

    def __call__(self) -> None:
        """All steps once."""
        self._carry, seen = self._scan(self._carry, self._inputs)
        jax.block_until_ready((self._carry, seen))

    def passes(self, least: int) -> int:
        """Arrays of `least` numbers or more that one step copies or writes over as a whole."""
        program = self._scan.as_text()
        return copies(program, least) + rewrites(program, least)


def copies(program: str, least: int) -> int:
    """Return copies of arrays of `least` elements or more in a compiled program's loops."""
    loops = program.split("\nENTRY ")[0]
    return _count(r"= \w+\[([\d,]*)\]\S* (?:copy|copy-start)\(", loops, least)


def rewrites(program: str, least: int) -> int:
    """Arrays of `least` elements or more that a CPU writes over whole to change a slice.

    XLA's CPU backend does that, without a copy to be seen, where a fusion writes a slice into an
    array of which it also reads one at an index that is a constant.
    """
    found = 0
    for block in program.split("\n\n"):
        root = re.search(r"ROOT \S+ = \w+\[[\d,]*\]\S* dynamic-update-slice\((%[^,]+),", block)
        if root and re.search(rf" slice\({re.escape(root[1])}\)", block):
            found += _count(r"ROOT \S+ = \w+\[([\d,]*)\]", block, least)
    return found


def _count(shape: str, text: str, least: int) -> int:
    sizes = [np.prod([int(n) for n in found.split(",") if n]) for found in re.findall(shape, text)]
    return sum(size >= least for size in sizes)


def step_loop(name: str, memory: Memory, problem: Problem, batch_size: int, steps: int) -> Loop:
    """Each step adds, samples, sets new priorities, and returns the probabilities."""

    def body(state: Any, inputs: Any) -> tuple[Any, Any]:
        return _step(memory, state, inputs)

    return Loop(body, problem.full(name, memory), _inputs(batch_size, steps))


def seeds_loop(
    name: str, memory: Memory, problem: Problem, batch_size: int, steps: int, seeds: int
) -> Loop:
    """As `step_loop`, of several memories through `vmap`."""
    full = problem.full(name, memory)
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], seeds, axis=0), full)
    inputs = _inputs(batch_size, steps, seeds)

    def body(state: Any, inputs: Any) -> tuple[Any, Any]:
        return jax.vmap(lambda state, inputs: _step(memory, state, inputs))(state, inputs)

    return Loop(body, states, inputs)


def learner_loop(name: str, memory: Memory, problem: Problem, batch_size: int, steps: int) -> Loop:
    """Each step adds, samples, learns by weighted temporal differences, and sets their sizes."""

    def body(carry: Any, inputs: Any) -> tuple[Any, Any]:
        state, network = carry
        new, key, _ = inputs
        state = memory.add(state, new)
        drawn = memory.sample(state, key)
        gradients, errors = jax.grad(_loss, has_aux=True)(network, drawn)
        network = jax.tree.map(lambda x, slope: x - STEP_SIZE * slope, network, gradients)
        return (memory.update(state, drawn, jnp.abs(errors)), network), jnp.mean(errors)

    random = np.random.default_rng(4)
    shapes = {"in": (OBSERVATION, HIDDEN), "bias": (HIDDEN,), "out": (HIDDEN, 1)}
    network = {k: jnp.float32(random.normal(scale=0.3, size=v)) for k, v in shapes.items()}
    return Loop(body, (problem.full(name, memory), network), _inputs(batch_size, steps))


def sampling_loop(name: str, memory: Memory, problem: Problem, steps: int) -> Loop:
    """Each step samples slots and their probabilities, and changes nothing."""

    def body(state: Any, key: jax.Array) -> tuple[Any, Any]:
        drawn = memory.sample(state, key)
        # Adds 0, which XLA does not know: it would move work on what never changes out of the loop.
        nothing = jnp.where(jnp.min(drawn.probabilities) < 0, 1, 0)
        state = jax.tree.map(lambda leaf: _add_to_first(leaf, nothing), state)
        return state, (drawn.indices, drawn.probabilities)

    keys = jax.random.split(jax.random.key(5), steps)
    return Loop(body, problem.full(name, memory), keys)


def surprise(items: Any, noise: jax.Array) -> jax.Array:
    """Return new priorities that depend on all gathered data, as heavy-tailed as the noise."""
    of_fields = [leaf.reshape(len(noise), -1).sum(axis=1) for leaf in jax.tree.leaves(items)]
    return jnp.abs(noise - 0.1 * sum(of_fields))


def _step(memory: Memory, state: Any, inputs: Any) -> tuple[Any, Any]:
    new, key, noise = inputs
    state = memory.add(state, new)
    drawn = memory.sample(state, key)
    priorities = surprise(drawn.items, noise)
    # The mean is for memories without priorities, which would not gather the batch.
    return memory.update(state, drawn, priorities), (drawn.probabilities, jnp.mean(priorities))


def _inputs(batch_size: int, steps: int, seeds: int | None = None) -> Any:
    """For each step (and seed): new items, a key, and noise in priorities."""
    shape = (steps,) if seeds is None else (steps, seeds)
    new = jax.tree.map(
        lambda leaf: jnp.asarray(leaf).reshape(*shape, ADDED, *leaf.shape[1:]),
        make_items(int(np.prod(shape)) * ADDED, 6),
    )
    keys = jax.random.split(jax.random.key(7), shape)
    return new, keys, jnp.asarray(make_priorities((*shape, batch_size), 8))


def _add_to_first(leaf: jax.Array, nothing: jax.Array) -> jax.Array:
    """Add 0 to the first element, at an index that XLA does not know either: see `rewrites`."""
    if leaf.size == 0:
        return leaf
    first = leaf.at[(nothing,) * leaf.ndim]
    old = first.get(mode="promise_in_bounds")
    new = old ^ (nothing > 0) if leaf.dtype == bool else old + nothing.astype(leaf.dtype)
    return first.set(new, mode="promise_in_bounds")


def _loss(network: Any, drawn: Drawn) -> tuple[jax.Array, jax.Array]:
    """Squared errors by importance-sampling weights, and the errors [B]."""
    items = drawn.items

    def value(observation: jax.Array) -> jax.Array:
        return (jnp.tanh(observation @ network["in"] + network["bias"]) @ network["out"])[:, 0]

    target = items["reward"] + GAMMA * items["discount"] * value(items["next_observation"])
    errors = jax.lax.stop_gradient(target) - value(items["observation"])
    return jnp.mean(drawn.weights * errors**2), errors
