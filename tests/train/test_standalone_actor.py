"""`train.act` by itself against an actor of `pipelined`: the same steps of environments."""

import jax
import numpy as np
import pytest

from accel_rl import agents, envs, replay, train
from accel_rl.agents import Agent
from accel_rl.train.pipeline.actors import Published, Version
from accel_rl.types import Environment

ENVS, ACTORS, ROLLOUT = 4, 2, 3
KEY = jax.random.key(11)


@pytest.fixture(scope="module")
def parts() -> tuple[Environment, Agent]:
    env = envs.environment("CartPole-v1")
    return env, agents.dqn(env.observation_space, env.action_space, hidden=(8,))


class Recording(train.LocalPort):
    """Tells what is added; an actor's share alone would not fit its memory."""

    def __init__(self, memory, whole=True):
        super().__init__(memory)
        self.added, self.whole = [], whole

    def add(self, transitions, priorities=None):
        self.added.append(jax.tree.map(np.asarray, (transitions, priorities)))
        if self.whole:
            super().add(transitions, priorities)


def program_of(parts, whole=True):
    env, agent = parts
    memory = replay.make(train.example(env, agent), 256, 8, "prioritised", num_envs=ENVS)
    port = Recording(memory, whole)
    schedule = {"rollout": ROLLOUT, "updates": 1, "policy_lag": 1, "priority_lag": 1}
    program = train.make(env, agent, port, num_envs=ENVS, learning_starts=100, **schedule)
    return program, port


OPTIONS = {"actor_priorities": 1, "exploration": agents.ape_x_exploration(ENVS)}


@pytest.mark.long  # compiles three actors
def test_an_actor_elsewhere_does_what_one_of_pipelined_does(parts):
    """In all iterations before learning, in which the policy is that of the key."""
    program, together = program_of(parts)
    train.pipelined(
        program, KEY, 120, executor="asynchronous", num_actors=ACTORS, queue_size=1, **OPTIONS
    )
    warmup = program.schedule.warmup
    assert warmup == 9
    state = jax.jit(program.init)(KEY)
    agent = parts[1]
    first = Version(Published(agent.policy(state.agent), agent.critics(state.agent)), 0)
    for number in range(ACTORS):
        mine, alone = program_of(parts, whole=False)
        train.act(
            mine, KEY, alone, lambda: first, number=number, num_actors=ACTORS,
            on_acted=lambda acted: acted.iteration < warmup - 1, **OPTIONS,
        )  # fmt: skip
        assert len(alone.added) == warmup
        own = slice(number * ENVS // ACTORS, (number + 1) * ENVS // ACTORS)
        for iteration in range(warmup):
            leaves = jax.tree.leaves(together.added[iteration])
            for one, other in zip(jax.tree.leaves(alone.added[iteration]), leaves, strict=True):
                np.testing.assert_array_equal(one, other[:, own])


@pytest.mark.long  # compiles three actors
def test_one_that_was_started_again_does_something_else(parts):
    program, port = program_of(parts, whole=False)
    agent = parts[1]
    state = jax.jit(program.init)(KEY)
    first = Version(Published(agent.policy(state.agent), agent.critics(state.agent)), 0)
    for restarts in (0, 1, 1):
        train.act(
            program, KEY, port, lambda: first, restarts=restarts,
            on_acted=lambda _: False, **OPTIONS,
        )  # fmt: skip
    once, again, same = (transitions.observation for transitions, _ in port.added)
    assert not np.array_equal(once, again)
    np.testing.assert_array_equal(again, same)
