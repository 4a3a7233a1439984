"""Trainings whose steps take the time that they are told: how much of the replay's time overlaps.

Each step of a small DQN training spins, in compiled code, for a number of turns that was calibrated
before. What is computed stays the same, so that the executor does all that it does otherwise.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import experiment
from accel_rl.compose import timing
from accel_rl.train import Program

SETTINGS = {
    "agent.hidden": (8,),
    "replay.batch_size": 8,
    "replay.capacity": 256,
    "schedule.num_envs": 1,
    "schedule.learning_starts": 64,
}


@functools.cache
def small() -> Program:
    """Return a small training of DQN."""
    wanted = experiment.load(
        None, SETTINGS, agent="dqn", environment="CartPole-v1", command="compose"
    )
    return wanted.program


def turns_per_second() -> float:
    """How fast compiled code spins."""
    turns = 1_000_000
    spin = jax.jit(lambda x: _spun(x, turns))
    return turns / timing.alone(lambda: spin(np.float32(0)).block_until_ready(), 1.0).median


def program(seconds: Mapping[str, float], speed: float) -> Program:
    """Return a training whose steps take additional seconds, by name of the step."""
    made = small()
    buffer, agent = made.require_replay(), made.agent
    turns = {step: int(value * speed) for step, value in seconds.items()}
    return dataclasses.replace(
        made,
        buffer=buffer._replace(
            add=_slowed(buffer.add, turns["insert"]),
            sample=_slowed(buffer.sample, turns["sample"]),
            update=_slowed(buffer.update, turns["update"]),
        ),
        agent=agent._replace(learn=_slowed(agent.learn, turns["learn"])),
    )


def _slowed(fn: Callable[..., Any], turns: int) -> Callable[..., Any]:
    def slow(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        leaves, structure = jax.tree.flatten(result)
        place = next(
            n
            for n, leaf in enumerate(leaves)
            if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.size
        )
        # A zero that no compiler knows to be one, so that the spin is neither dropped nor moved.
        start = jnp.minimum(jnp.abs(leaves[place].ravel()[0]), np.float32(0))
        leaves[place] = leaves[place] + _spun(start.astype(jnp.float32), turns)
        return jax.tree.unflatten(structure, leaves)

    return slow


def _spun(start: jax.Array, turns: int) -> jax.Array:
    return jax.lax.fori_loop(0, turns, lambda _, x: x * np.float32(0.999), start)
