"""Whether an environment, an agent and a memory go together in one training."""

import math

import jax

from accel_rl.agents import Agent
from accel_rl.replay import Replay
from accel_rl.train.collection import example
from accel_rl.train.schedule import Schedule
from accel_rl.types import Batch, Environment, ReplayPort


def check_fit(
    env: Environment, agent: Agent, memory: Replay | ReplayPort, schedule: Schedule
) -> None:
    """Refuses parts that do not fit each other.

    Raises:
      TypeError: if the memory is neither a replay memory nor a port.
      ValueError: if the spaces differ, or the memory was made for other transitions, another number
        of environments, a shorter rollout, or samples that are no batch of single observations.
    """
    for name in ("observation_space", "action_space"):
        ours, theirs = getattr(env, name), getattr(agent, name)
        if ours != theirs:
            raise ValueError(f"the agent's {name} must be {env.name}'s, {ours}, got {theirs}")
    if isinstance(memory, Replay):
        _check_memory(env, agent, memory, schedule)
    elif not isinstance(memory, ReplayPort):
        raise TypeError(
            f"memory must be a replay memory (replay.make makes one) or a port, got {memory!r}"
        )


def _check_memory(env: Environment, agent: Agent, memory: Replay, schedule: Schedule) -> None:
    store = memory.parts[1]
    wanted, got = example(env, agent), store.example
    if str(jax.tree.structure(wanted)) != str(jax.tree.structure(got)) or any(
        (a.shape, a.dtype) != (b.shape, b.dtype)
        for a, b in zip(jax.tree.leaves(wanted), jax.tree.leaves(got), strict=True)
    ):
        raise ValueError(f"memory must be made for example(env, agent), {wanted}, got {got}")
    ring = store.ring
    if not store.has_env_axis or ring.num_envs != schedule.num_envs:
        raise ValueError(f"memory must be made with num_envs={schedule.num_envs}")
    most = ring.rows - ring.reach + 1
    if schedule.rollout > most:
        raise ValueError(f"rollout must be at most {most} for this memory, got {schedule.rollout}")
    sampled = jax.eval_shape(lambda: memory.sample(memory.init(), jax.random.key(0), 1.0, 1.0))
    observation = jax.tree.map(lambda leaf: leaf.shape, wanted.observation)
    if not isinstance(sampled.batch, Batch) or observation != jax.tree.map(
        lambda leaf: leaf.shape[1:], sampled.batch.observation
    ):
        raise ValueError(
            "memory must sample a types.Batch of single observations: without sequence_length and "
            "frame_stack"
        )
    if agent.needs_next_action and ring.window > 1:
        raise ValueError(
            "memory must have n_step=1: the agent learns from the action that follows a step"
        )
    # Learning comes first in an iteration: what the warm-up collected must do for it.
    complete = (schedule.warmup * schedule.rollout - (ring.window - 1)) * ring.num_envs
    if complete < memory.least_size:
        rows = math.ceil(memory.least_size / ring.num_envs) + ring.window - 1
        least = (math.ceil(rows / schedule.rollout) - 1) * schedule.steps + 1
        raise ValueError(
            f"learning_starts must be at least {least}, so that there are {memory.least_size} "
            f"complete items to sample from, got {schedule.learning_starts}"
        )
