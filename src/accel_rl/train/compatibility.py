"""Compatibility of environment, agent and replay buffer in one training program."""

import math

import jax

from accel_rl.agents import Agent
from accel_rl.replay import Replay
from accel_rl.train.collection import example
from accel_rl.train.schedule import Schedule
from accel_rl.types import Batch, Environment, ReplayPort


def check_compatible(
    env: Environment, agent: Agent, buffer: Replay | ReplayPort, schedule: Schedule
) -> None:
    """Raise ValueError if the parts of a program are incompatible."""
    for name in ("observation_space", "action_space"):
        ours, theirs = getattr(env, name), getattr(agent, name)
        if ours != theirs:
            raise ValueError(f"the agent's {name} must be {env.name}'s, {ours}, got {theirs}")
    if isinstance(buffer, Replay):
        _check_buffer(env, agent, buffer, schedule)


def _check_buffer(env: Environment, agent: Agent, buffer: Replay, schedule: Schedule) -> None:
    store = buffer.parts[1]
    wanted, got = example(env, agent), store.example
    if str(jax.tree.structure(wanted)) != str(jax.tree.structure(got)) or any(
        (a.shape, a.dtype) != (b.shape, b.dtype)
        for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True)
    ):
        raise ValueError(f"buffer must be made for example(env, agent), {wanted}, got {got}")
    ring = store.ring
    if not store.has_env_axis or ring.num_envs != schedule.num_envs:
        raise ValueError(f"buffer must be made with num_envs={schedule.num_envs}")
    most = ring.rows - ring.reach + 1
    if schedule.rollout > most:
        raise ValueError(f"rollout must be at most {most} for this buffer, got {schedule.rollout}")
    sampled = jax.eval_shape(lambda: buffer.sample(buffer.init(), jax.random.key(0), 1.0, 1.0))
    observation = jax.tree.map(lambda leaf: leaf.shape, wanted.observation)
    if not isinstance(sampled.batch, Batch) or observation != jax.tree.map(
        lambda leaf: leaf.shape[1:], sampled.batch.observation
    ):
        raise ValueError(
            "buffer must sample a types.Batch of single observations: without sequence_length and "
            "frame_stack"
        )
    if agent.needs_next_action and ring.window > 1:
        raise ValueError(
            "buffer must have n_step=1: the agent learns from the action that follows a step"
        )
    # Learning comes first in an iteration, so the warm-up alone must fill the first batch.
    complete = (schedule.warmup * schedule.rollout - (ring.window - 1)) * ring.num_envs
    if complete < buffer.least_size:
        rows = math.ceil(buffer.least_size / ring.num_envs) + ring.window - 1
        least = (math.ceil(rows / schedule.rollout) - 1) * schedule.steps + 1
        raise ValueError(
            f"learning_starts must be at least {least}, so that there are {buffer.least_size} "
            f"complete items to sample from, got {schedule.learning_starts}"
        )
