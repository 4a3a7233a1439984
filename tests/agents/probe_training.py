"""Training on the probe environments, whole and compiled once for all of them, also when broken.

`learn_probes(case)` trains an agent on each probe, and once more for each of `DEFECTS`, with agents
and loops that are broken on purpose; `failures` says which probes find something wrong.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import probes

from accel_rl import replay, train
from accel_rl.types import Batch, Discrete

STEPS_SO_FAR = 10_000  # for schedules of exploration, which a greedy action must ignore
RETURNS = np.linspace(-2, 3, 251, dtype=np.float32)  # among which a learned value is looked for


def _negated(space, action):
    """The action on the other side of the space."""
    if isinstance(space, Discrete):
        return np.int32(space.n - 1) - action
    return np.float32(np.add(space.low, space.high)) - action


# What is wrong, and which probes must say so. Each is a number that may be traced.
DEFECTS = {
    "nothing": set(),
    "learning sees no reward": {"constant", "observation", "discounting", "choice", "both"}
    | {"truncation"},
    "learning sees no observation": {"observation", "discounting", "both", "truncation"},
    "never bootstraps": {"discounting", "truncation"},
    "multiplies by gamma again": {"discounting", "truncation"},
    "acts on the contrary": {"choice", "both"},
    "acts without looking": {"both"},
    "truncation ends the episode": {"truncation"},
    "bootstraps from the observation after the reset": {"truncation"},
}
_NUMBER = {name: number for number, name in enumerate(DEFECTS)}


def broken_agent(agent, defect):
    """The agent with the defect of that number, if it is one of an agent."""

    def has(name, bad, good):
        return jax.tree.map(lambda b, g: jnp.where(defect == _NUMBER[name], b, g), bad, good)

    def of_state_0(observation):
        box = observation.dtype == np.float32
        return probes.observe(jnp.zeros(observation.shape[0], jnp.int32), box)

    def learn(state, batch, weights, key):
        discount = has("never bootstraps", 0 * batch.discount, batch.discount)
        twice = discount * np.float32(probes.GAMMA)
        blind = "learning sees no observation"
        batch = dataclasses.replace(
            batch,
            observation=has(blind, of_state_0(batch.observation), batch.observation),
            next_observation=has(blind, of_state_0(batch.next_observation), batch.next_observation),
            reward=has("learning sees no reward", 0 * batch.reward, batch.reward),
            discount=has("multiplies by gamma again", twice, discount),
        )
        return agent.learn(state, batch, weights, key)

    def act(policy, memory, observation, key, step, explore=True):
        blind = "acts without looking"
        observation = has(blind, of_state_0(observation), observation)
        action, memory = agent.act(policy, memory, observation, key, step, explore)
        if not explore:
            action = has("acts on the contrary", _negated(agent.action_space, action), action)
        return action, memory

    return agent._replace(learn=learn, act=act)


def broken_env(env, defect):
    """The environment with what a broken loop would make of truncation."""

    def step(key, state, action):
        observation, state, reward, terminated, truncated, info = env.step(key, state, action)
        ends = defect == _NUMBER["truncation ends the episode"]
        late = defect == _NUMBER["bootstraps from the observation after the reset"]
        final = jnp.where(late, observation, info["final_observation"])
        terminated, truncated = terminated | (ends & truncated), truncated & ~ends
        return observation, state, reward, terminated, truncated, {"final_observation": final}

    return env._replace(step=step)


def value_of(agent, critics, observation, action, key):
    """What critics hold state and action for: the return that surprises them least, [B]."""

    def surprise(value):
        filled = jnp.full(observation.shape[0], value)
        end = Batch(observation, action, filled, 0 * filled, observation, action)
        return jnp.abs(agent.td_error(critics, end, key))

    return jnp.asarray(RETURNS)[jnp.argmin(jax.lax.map(surprise, jnp.asarray(RETURNS)), axis=0)]


def train_on(case, number, defect, key):
    """Values [2] and greedy actions [2, ...] in both states of a probe, after training."""
    num_envs = 8
    env = probes.probe(number, continuous=case.continuous, box=case.box)
    agent = case.make(env.observation_space, env.action_space)
    taught, used = broken_agent(agent, defect), broken_env(env, defect)
    example = train.example(used, taught)
    if case.online:
        memory = replay.newest(example, num_envs)
    else:
        memory = replay.make(example, 4096, 32, num_envs=num_envs)
    program = train.make(used, taught, memory, num_envs=num_envs, learning_starts=64)
    steps = case.iterations * num_envs
    result = train.fused(program, steps)(key, agent=case.hyper, gamma=probes.GAMMA)
    state, states = result.state.agent, jnp.arange(2)
    observation = probes.observe(states, case.box)
    action, _ = taught.act(
        agent.policy(state), agent.memory(2), observation, key, STEPS_SO_FAR, explore=False
    )
    best = probes.best_action(states, case.continuous)
    return value_of(agent, agent.critics(state), observation, best, key), action


def learn_probes(case, defects=tuple(DEFECTS)):
    """Values [defects, 6, 2] and actions [defects, 6, 2, ...], of one compiled program."""
    numbers = jnp.asarray([_NUMBER[name] for name in defects])
    each = jnp.arange(len(probes.NAMES))
    run = jax.vmap(functools.partial(train_on, case), (0, None, None))
    run = jax.jit(jax.vmap(run, (None, 0, None)))
    return run(each, numbers, jax.random.key(0))


def failures(case, values, actions):
    """Names of the probes that were not learned, from values [6, 2] and actions [6, 2, ...]."""
    off = np.abs(np.asarray(values) - probes.VALUES)
    wrong = (off > case.tolerance) & probes.VISITED
    best = np.asarray(probes.best_action(jnp.arange(2), case.continuous), np.float32)
    missed = np.abs(np.asarray(actions, np.float32) - best).reshape(len(values), 2, -1).max(-1)
    wrong |= (missed > 0.5) & probes.MATTERS
    return {name for name, bad in zip(probes.NAMES, wrong.any(1), strict=True) if bad}
