"""Training segments in host environments: one compiled call learns and acts, another inserts."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment
from accel_rl.train.collection import fresh_memory
from accel_rl.train.compiled import SegmentResult, finite
from accel_rl.train.pipeline.actors import host_episodes
from accel_rl.train.pipeline.host_actor import (
    ended_episodes,
    first_seed,
    host_rollout,
    host_transition,
)
from accel_rl.train.program import Program
from accel_rl.train.state import SegmentSums, TrainState
from accel_rl.types import Array, PyTree


def host_segment(
    program: Program, env: HostEnvironment
) -> Callable[[TrainState, int, bool], SegmentResult]:
    """Make a function that runs a loop of iterations, in the order of `Program.iterate`.

    It depends on the keys as the deterministic executor does. Episodes go on from segment to
    segment.

    Args:
      program: made with `env.environment`; its agent must not learn from the next action.
      env: environments, reset at the first call.

    Returns:
      segment(state, iterations, learning): as `compiled.CompiledProgram.segment`; the state is
        donated.
    """
    if program.agent.needs_next_action:
        raise ValueError(
            "executor must be deterministic or asynchronous for an agent that learns from the next "
            "action, in host environments, got fused"
        )
    learn, act, insert, summed = _compiled(program)
    schedule = program.schedule

    def segment(state: TrainState, iterations: int, learning: bool) -> SegmentResult:
        observation = env.observation
        if observation is None:
            observation = env.reset(first_seed(state.key, int(state.iteration)))
        memory = state.actor.memory
        stopped = np.zeros(schedule.num_envs, bool)
        rest, episodes = state.actor, host_episodes(0, 0, 0)
        absent: PyTree = None  # the compiled calls take the rest of the state alone
        state = dataclasses.replace(state, actor=absent)
        sums = summed(state)
        for _ in range(iterations):
            state, sums, policy, keys, action, memory = learn(
                state, sums, memory, stopped, observation, learning=learning
            )
            rows = []
            for row in range(schedule.rollout):
                if row:
                    number = state.iteration, np.int32(row)
                    action, memory = act(policy, memory, stopped, observation, keys, *number)
                done = env.step(action)
                rows.append(host_transition(observation, action, done))
                observation, stopped = done.observation, done.terminated | done.truncated
                episodes = jax.tree.map(np.add, episodes, ended_episodes(done))
            state = insert(state, host_rollout(rows))
        memory = fresh_memory(program.agent, memory, stopped)
        actor = dataclasses.replace(rest, observation=jnp.asarray(observation), memory=memory)
        sums = dataclasses.replace(sums, episodes=episodes)
        metrics = _metrics(program)(state, sums)
        state = dataclasses.replace(program.finish(state, sums), actor=actor)
        return SegmentResult(state, metrics, finite(state.agent))

    return segment


@functools.lru_cache(maxsize=8)
def _compiled(program: Program) -> tuple[Callable[..., PyTree], ...]:
    agent, num_envs = program.agent, program.schedule.num_envs

    def act(
        policy: PyTree,
        memory: PyTree,
        stopped: Array,
        observation: PyTree,
        keys: Array,
        iteration: Array,
        row: Array,
    ) -> tuple[Array, PyTree]:
        memory = fresh_memory(agent, memory, stopped)
        # Exploration schedules count the steps of all environments.
        step = iteration * np.int32(program.schedule.steps) + row * np.int32(num_envs)
        return agent.act(policy, memory, observation, keys[row, 0], step)

    def learn(
        state: TrainState,
        sums: SegmentSums,
        memory: PyTree,
        stopped: Array,
        observation: PyTree,
        *,
        learning: bool,
    ) -> PyTree:
        keys = program.keys(state.key, state.iteration)
        state, sums, policy = program.learn(state, sums, keys, learning)
        first = act(
            policy, memory, stopped, observation, keys.collect, state.iteration, jnp.int32(0)
        )
        single = program.schedule.rollout == 1
        return state, sums, None if single else policy, keys.collect, *first

    return (
        jax.jit(learn, static_argnames="learning", donate_argnums=(0, 1)),
        jax.jit(act),
        jax.jit(program.insert, donate_argnums=0),
        jax.jit(program.zeros),
    )


@functools.lru_cache(maxsize=8)
def _metrics(program: Program) -> Callable[[TrainState, SegmentSums], dict[str, Array]]:
    return jax.jit(program.metrics)
