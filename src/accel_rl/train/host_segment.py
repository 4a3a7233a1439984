"""Training segments in host environments: one compiled call learns and acts, another inserts."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment, HostStep
from accel_rl.train.collection import fresh_memory
from accel_rl.train.compiled import SegmentResult, finite, mapped, sharing
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
    program: Program, env: HostEnvironment, key: Array, seeds: Mapping[str, Any]
) -> Callable[[TrainState, int, bool], SegmentResult]:
    """Make a function that runs a loop of iterations, in the order of `Program.iterate`.

    It depends on the keys as the deterministic executor does, and several trainings side by side as
    each by itself. Episodes go on from segment to segment.

    Args:
      program: made with `env.environment`; its agent must not learn from the next action.
      env: the environments of the first training, then of the second; reset at the first call.
      key: PRNG key, or [seeds] of them.
      seeds: arguments of `over_seeds`; only read where there are several keys.

    Returns:
      segment(state, iterations, learning): as `compiled.CompiledProgram.segment`; the state is
        donated.
    """
    if program.agent.needs_next_action:
        raise ValueError(
            "executor must be deterministic or asynchronous for an agent that learns from the next "
            "action, in host environments, got fused"
        )
    schedule = program.schedule
    shape = (*key.shape, schedule.num_envs)  # [E], or [seeds, E]
    if env.num_envs != np.prod(shape):
        raise ValueError(
            f"env must have {np.prod(shape)} environments, {schedule.num_envs} for each training, "
            f"got {env.num_envs}"
        )
    compiled = _compiled(program, sharing(key, seeds))

    def split(leaf: np.ndarray) -> np.ndarray:
        return leaf.reshape(*shape, *leaf.shape[1:])

    def reset(state: TrainState) -> np.ndarray:
        first = map(first_seed, state.key.reshape(-1, 2), state.iteration.ravel())
        return env.reset([seed + n for seed in first for n in range(schedule.num_envs)])

    def segment(state: TrainState, iterations: int, learning: bool) -> SegmentResult:
        observation = split(reset(state) if env.observation is None else env.observation)
        memory = state.actor.memory
        stopped = np.zeros(shape, bool)
        rest, episodes = state.actor, host_episodes(*[np.zeros(key.shape)] * 3)
        absent: PyTree = None  # the compiled calls take the rest of the state alone
        state = dataclasses.replace(state, actor=absent)
        sums = compiled.zeros(state)
        names = {field.name for field in dataclasses.fields(state)}
        beside: dict[str, PyTree] = dict.fromkeys(names - {"replay", "iteration"})
        for _ in range(iterations):
            state, sums, policy, keys, action, memory = compiled.learn[learning](
                state, sums, memory, stopped, observation
            )
            rows = []
            for row in range(schedule.rollout):
                if row:
                    number = state.iteration, np.int32(row)
                    action, memory = compiled.act(
                        policy, memory, stopped, observation, keys, *number
                    )
                action = np.asarray(action)
                each = action.reshape(env.num_envs, *env.action_space.shape)
                done = HostStep(*map(split, env.step(each)))
                rows.append(host_transition(observation, action, done))
                observation, stopped = done.observation, done.terminated | done.truncated
                episodes = jax.tree.map(np.add, episodes, ended_episodes(done))
            rollout = program.scaled(host_rollout(rows, axis=key.ndim))
            # Without what it leaves as it is: each array of a call takes a microsecond or two.
            inserted = compiled.insert(dataclasses.replace(state, **beside), rollout)
            state = dataclasses.replace(state, replay=inserted.replay, iteration=inserted.iteration)
        memory = compiled.fresh(memory, stopped)
        actor = dataclasses.replace(rest, observation=jnp.asarray(observation), memory=memory)
        sums = dataclasses.replace(sums, episodes=episodes)
        metrics = compiled.metrics(state, sums)
        state = dataclasses.replace(program.finish(state, sums), actor=actor)
        return SegmentResult(state, metrics, compiled.finite(state.agent))

    return segment


class _Calls(NamedTuple):
    learn: dict[bool, Callable[..., PyTree]]
    act: Callable[..., PyTree]
    insert: Callable[..., PyTree]
    fresh: Callable[..., PyTree]
    zeros: Callable[..., PyTree]
    metrics: Callable[..., PyTree]
    finite: Callable[..., PyTree]


@functools.lru_cache(maxsize=8)
def _compiled(program: Program, shared: tuple[tuple[str, Any], ...] | None) -> _Calls:
    agent, num_envs = program.agent, program.schedule.num_envs
    fresh = functools.partial(fresh_memory, agent)

    def act(
        policy: PyTree,
        memory: PyTree,
        stopped: Array,
        observation: PyTree,
        keys: Array,
        iteration: Array,
        row: Array,
    ) -> tuple[Array, PyTree]:
        memory = fresh(memory, stopped)
        # Exploration schedules count the steps of all environments.
        step = iteration * np.int32(program.schedule.steps) + row * np.int32(num_envs)
        return agent.act(policy, memory, observation, keys[row, 0], step)

    def learn(
        learning: bool,
        state: TrainState,
        sums: SegmentSums,
        memory: PyTree,
        stopped: Array,
        observation: PyTree,
    ) -> PyTree:
        keys = program.keys(state.key, state.iteration)
        state, sums, policy = program.learn(state, sums, keys, learning)
        first = act(
            policy, memory, stopped, observation, keys.collect, state.iteration, jnp.int32(0)
        )
        single = program.schedule.rollout == 1
        return state, sums, None if single else policy, keys.collect, *first

    many = functools.partial(mapped, shared)
    learns = {each: many(functools.partial(learn, each), (0,) * 5) for each in (False, True)}
    return _Calls(
        learn={each: jax.jit(fn, donate_argnums=(0, 1)) for each, fn in learns.items()},
        act=jax.jit(many(act, (0,) * 6 + (None,))),
        insert=jax.jit(many(program.insert, (0, 0)), donate_argnums=0),
        fresh=jax.jit(many(fresh, (0, 0))),
        zeros=jax.jit(many(program.zeros, (0,))),
        metrics=jax.jit(many(program.metrics, (0, 0))),
        finite=jax.jit(many(finite, (0,))),
    )
