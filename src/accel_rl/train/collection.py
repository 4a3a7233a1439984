"""Collection of transitions: step environments with a policy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.types import Array, ArrayLike, Environment, PyTree, Transition


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ActorState:
    """State of E environments, and of the agent's episodes in them; a pytree."""

    env: PyTree  # leaves [E, ...]
    observation: PyTree  # [E, *observation]
    memory: PyTree  # of the agent, leaves [E, ...]
    action: Array | None  # [E, *action], chosen already; None unless the agent learns from it
    episode_return: Array  # [E] float32, rewards of the present episode so far
    episode_length: Array  # [E] int32, its steps so far


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Episodes:
    """Sums over the episodes that stopped; a pytree."""

    count: Array  # [] int32
    episode_return: Array  # [] float32
    episode_length: Array  # [] float32


def example(env: Environment, agent: Agent) -> Transition:
    """Return shapes and dtypes of one environment's transition, for `replay.make`.

    Args:
      env: its observations have these shapes.
      agent: its actions have these shapes.
    """
    observation, _ = jax.eval_shape(env.reset, jax.random.key(0))
    space = agent.action_space
    action = jax.ShapeDtypeStruct(space.shape, jax.dtypes.canonicalize_dtype(space.dtype))
    scalar: PyTree = jax.ShapeDtypeStruct((), jnp.float32)
    flag: PyTree = jax.ShapeDtypeStruct((), jnp.bool_)
    return Transition(
        observation=observation,
        action=action,
        reward=scalar,
        discount=scalar,
        truncated=flag,
        next_observation=observation,
        extras=action if agent.needs_next_action else None,
    )


def start(env: Environment, agent: Agent, num_envs: int, policy: PyTree, key: Array) -> ActorState:
    """Return environments at the start of their first episodes."""
    reset_key, act_key = jax.random.split(key)
    observation, state = jax.vmap(env.reset)(jax.random.split(reset_key, num_envs))
    memory, action = agent.memory(num_envs), None
    if agent.needs_next_action:
        action, memory = agent.act(policy, memory, observation, act_key, 0)
    return ActorState(
        env=state,
        observation=observation,
        memory=memory,
        action=action,
        episode_return=jnp.zeros(num_envs, jnp.float32),
        episode_length=jnp.zeros(num_envs, jnp.int32),
    )


def collect(
    env: Environment,
    agent: Agent,
    actor: ActorState,
    policy: PyTree,
    keys: Array,
    step: ArrayLike,
    *,
    num_envs: ArrayLike,
) -> tuple[ActorState, Transition, Episodes]:
    """Step E environments `rollout` times.

    Args:
      env: one environment.
      agent: acts.
      actor: where the environments stand.
      policy: what the agent acts with.
      keys: [rollout, 1 + E] PRNG keys.
      step: steps of all environments so far, int32.
      num_envs: all environments, those of other actors included; each row adds as many steps.

    Returns:
      The new state; transitions, leaves [E, ...], or [rollout, E, ...] if rollout is above 1; sums
      over the episodes that stopped.
    """
    rollout = keys.shape[0]
    if rollout == 1:
        return _step(env, agent, actor, policy, keys[0], step)

    def one(actor: ActorState, inputs: PyTree) -> PyTree:
        keys, number = inputs
        actor, transition, episodes = _step(env, agent, actor, policy, keys, step + number)
        return actor, (transition, episodes)

    numbers = jnp.arange(rollout, dtype=jnp.int32) * num_envs
    actor, (transitions, episodes) = jax.lax.scan(one, actor, (keys, numbers))
    return actor, transitions, jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), episodes)


def _step(
    env: Environment, agent: Agent, actor: ActorState, policy: PyTree, keys: Array, step: ArrayLike
) -> tuple[ActorState, Transition, Episodes]:
    action, memory = actor.action, actor.memory
    if action is None:
        action, memory = agent.act(policy, actor.memory, actor.observation, keys[0], step)
    observation, state, reward, terminated, truncated, info = jax.vmap(env.step)(
        keys[1:], actor.env, action
    )
    stopped = terminated | truncated
    memory = fresh_memory(agent, memory, stopped)
    final = info["final_observation"]
    executed = extras = None
    if agent.needs_next_action:
        # Where no episode stopped both observations are the same, and so are the actions. At the
        # end of a truncated one the action is drawn for the target, and never executed.
        extras, _ = agent.act(policy, memory, final, keys[0], step)
        executed, memory = agent.act(policy, memory, observation, keys[0], step)
    transition = Transition(
        observation=actor.observation,
        action=action,
        reward=reward,
        discount=1 - terminated.astype(jnp.float32),
        truncated=truncated,
        next_observation=final,
        extras=extras,
    )
    total, length = actor.episode_return + reward, actor.episode_length + 1
    episodes = Episodes(
        jnp.sum(stopped, dtype=jnp.int32),
        jnp.sum(jnp.where(stopped, total, 0)),
        jnp.sum(jnp.where(stopped, length, 0).astype(jnp.float32)),
    )
    actor = ActorState(
        env=state,
        observation=observation,
        memory=memory,
        action=executed,
        episode_return=jnp.where(stopped, jnp.zeros_like(total), total),
        episode_length=jnp.where(stopped, jnp.zeros_like(length), length),
    )
    return actor, transition, episodes


def fresh_memory(agent: Agent, memory: PyTree, stopped: ArrayLike) -> PyTree:
    """Return the agent's memory, leaves [E, ...], anew where an episode has stopped, [E] bool."""

    def one(new: Array, old: Array) -> Array:
        return jnp.where(jnp.reshape(stopped, (-1, *[1] * (old.ndim - 1))), new, old)

    return jax.tree.map(one, agent.memory(np.size(stopped)), memory)
