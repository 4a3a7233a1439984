"""Contract check of agents, except learning performance; see docs/agent.md."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.testing.expect import expect, expect_close, expect_equal, expect_refusal
from accel_rl.types import Array, Batch, Box, Discrete, PyTree, Space

ENVS, ITEMS = 5, 6
LEFT_OUT = 2  # the item of weight 0


def check_agent(
    make: Callable[[Space, Space], Agent],
    observation_space: Space,
    action_space: Space,
    *,
    random: bool = False,
    **hyperparameters: float,
) -> None:
    """Check an agent's contract, function by function, on random observations.

    Args:
      make: constructor of the agent, from both spaces.
      observation_space: a supported observation space.
      action_space: a supported action space.
      random: True if learning is random, so that its TD errors may differ from `td_error`.
      **hyperparameters: values with which the agent explores and learning changes its state.
    """
    agent = make(observation_space, action_space)
    _check_refusals(make, agent)
    found = jax.jit(functools.partial(_play, agent, hyperparameters))(jax.random.key(1))
    _check_hyperparameters(agent, found["swept"])
    _check_actions(agent, found)
    _check_learning(found, random)


def _play(agent: Agent, hyper: Mapping[str, float], key: Array) -> dict[str, Any]:
    """Call the agent's functions in one compiled program, and return their results."""
    keys = iter(jax.random.split(key, 11))
    state = agent.init(next(keys), **hyper)
    policy, memory = agent.policy(state), agent.memory(ENVS)
    observation = _elements(agent.observation_space, (ENVS,), next(keys))
    act = functools.partial(agent.act, policy, memory, observation)
    acting = jax.vmap(lambda key: act(key, 100))(jax.random.split(next(keys), 64))
    greedy = [act(next(keys), step, explore=False)[0] for step in (0, 100_000)]

    batch, weights = _batch_of(agent, next(keys)), jnp.ones(ITEMS)
    learn_key = next(keys)
    # Three updates at once: as alone, and with an item of weight 0, whatever that says.
    other = jax.tree.map(lambda leaf: leaf.at[LEFT_OUT].set(leaf[LEFT_OUT - 1]), batch)
    other = dataclasses.replace(other, reward=other.reward.at[LEFT_OUT].set(1e3))
    without = weights.at[LEFT_OUT].set(0)
    mapped = jax.vmap(agent.learn, (None, 0, 0, None))(
        state, _stacked(batch, batch, other), _stacked(weights, without, without), learn_key
    )
    # Single items: any one, and one at the end of its episode, of which nothing follows.
    single = jax.tree.map(lambda leaf: leaf[:1], batch)
    last = dataclasses.replace(single, discount=jnp.zeros(1))
    elsewhere = dataclasses.replace(last, next_observation=batch.next_observation[1:2])
    singles = _stacked(single, last, elsewhere)
    critics = agent.critics(state)
    return {
        "swept": jax.vmap(lambda hyper: agent.init(key, **hyper))(_swept(agent)),
        "state": state,
        "memory": memory,
        "actions": acting[0],
        "memories": acting[1],
        "greedy": greedy,
        "learned": agent.learn(state, batch, weights, learn_key),
        "mapped": mapped,
        "td_error": agent.td_error(critics, batch, learn_key),
        "singles": jax.vmap(agent.td_error, (None, 0, None))(critics, singles, learn_key)[:, 0],
        "learned_singles": jax.vmap(
            lambda item: agent.learn(state, item, jnp.ones(1), learn_key)[1].td_error[0]
        )(singles),
    }


def _stacked(*trees: PyTree) -> PyTree:
    """Stack trees along a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _elements(space: Space, leading: tuple[int, ...], key: Array) -> Array:
    """Sample random elements of a space, [*leading, ...]; infinite bounds count as 1."""
    if isinstance(space, Discrete):
        return jax.random.randint(key, leading, 0, space.n, jnp.int32)
    low, high = (
        np.where(np.isfinite(bound), bound, np.sign(bound)).astype(np.float32).reshape(space.shape)
        for bound in (space.low, space.high)
    )
    drawn = jax.random.uniform(key, (*leading, *space.shape), minval=low, maxval=high)
    return drawn.astype(jax.dtypes.canonicalize_dtype(space.dtype))


def _batch_of(agent: Agent, key: Array) -> Batch:
    """Make six random transitions, of which the last ends its episode."""
    first, second, third = jax.random.split(key, 3)
    observations = _elements(agent.observation_space, (2, ITEMS), first)
    actions = _elements(agent.action_space, (2, ITEMS), second)
    return Batch(
        observation=observations[0],
        action=actions[0],
        reward=jax.random.normal(third, (ITEMS,)),
        discount=jnp.full(ITEMS, 0.5).at[-1].set(0),
        next_observation=observations[1],
        extras=actions[1] if agent.needs_next_action else None,
    )


def _swept(agent: Agent) -> dict[str, Array]:
    """Return values [1 + N] of each hyper-parameter: defaults, then each one changed in turn."""
    names = list(agent.hyperparameters)
    values = {}
    for row, name in enumerate(names, start=1):
        limits = agent.hyperparameters[name]
        changed = (limits.low + limits.default) / 2
        if changed == limits.default:
            changed = min(limits.high, limits.default + 0.5)
        column = np.full(1 + len(names), limits.default, np.float32)
        column[row] = changed
        values[name] = jnp.asarray(column)
    return values


def _check_hyperparameters(agent: Agent, states: PyTree) -> None:
    """Check that each hyper-parameter is in the state, so that `vmap` can sweep it."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
    for row, name in enumerate(agent.hyperparameters, start=1):
        swept = any((leaf[row] != leaf[0]).any() for leaf in leaves)
        expect(swept, f"hyper-parameter {name} is not in the state")


def _check_actions(agent: Agent, found: Mapping[str, PyTree]) -> None:
    """Check that actions are in the space, and that greedy ones ignore key and step."""
    space = agent.action_space
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    actions = np.asarray(found["actions"])
    wanted = (64, ENVS, *space.shape), dtype
    expect_equal((actions.shape, actions.dtype), wanted, "shape and dtype of actions")
    low, high = (0, space.n - 1) if isinstance(space, Discrete) else (space.low, space.high)
    expect((actions >= low) & (actions <= high), "an action is not of its space")
    expect((actions != actions[0]).any(), "exploring tries nothing")
    first, second = found["greedy"]
    expect_equal(first.shape, actions.shape[1:], "shape of greedy actions")
    expect(first == second, "without exploring an action depends on the key or the step")
    for old, new in zip(
        jax.tree.leaves(found["memory"]), jax.tree.leaves(found["memories"]), strict=True
    ):
        expect_equal(old.shape[:1], (ENVS,), "the first axis of what acting remembers")
        kept = old.shape, old.dtype
        expect_equal((new.shape[1:], new.dtype), kept, "shape and dtype of what acting remembers")


def _check_learning(found: Mapping[str, PyTree], random: bool) -> None:
    """Check an update's shapes, weights, episode ends and TD errors, and that `vmap` agrees."""
    state, learned = found["learned"]
    _check_same_types(state, found["state"])
    before, after = jax.tree.leaves(found["state"]), jax.tree.leaves(state)
    changed = any(
        (np.asarray(a) != np.asarray(b)).any() for a, b in zip(before, after, strict=True)
    )
    expect(changed, "learning changes nothing")
    for error in (learned.td_error, found["td_error"]):
        kind = error.shape, error.dtype
        expect_equal(kind, ((ITEMS,), np.float32), "shape and dtype of a TD error")
        expect(np.isfinite(error), "a TD error is not finite")
    expect(bool(learned.metrics), "learning reports no metrics")
    for name, metric in learned.metrics.items():
        expect_equal((metric.shape, metric.dtype), ((), np.float32), f"shape and dtype of {name}")
        expect(np.isfinite(metric), f"metric {name} is not finite")
    alone, weighed, weighed_otherwise = (
        jax.tree.map(lambda leaf, n=n: leaf[n], found["mapped"]) for n in range(3)
    )
    expect_close(alone, found["learned"], "learning is another under vmap")
    expect_close(weighed[0], weighed_otherwise[0], "an item of weight 0 counts")
    kept = np.arange(ITEMS) != LEFT_OUT
    errors = weighed[1].td_error[kept], weighed_otherwise[1].td_error[kept]
    expect_close(*errors, "an item of weight 0 changes the errors of others")
    single, last, elsewhere = found["singles"]
    expect_close(last, elsewhere, "what follows the end of an episode counts")
    wrong = "td_error is not what learning finds"
    expect_close(last, found["learned_singles"][1], wrong)
    if not random:
        expect_close(single, found["learned_singles"][0], wrong)


def _check_same_types(tree: PyTree, other: PyTree) -> None:
    """Check that two trees have the same structure, shapes and dtypes, as a scan's carry."""
    expect_equal(jax.tree.structure(tree), jax.tree.structure(other), "a learned state's structure")
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        expect_equal((a.shape, a.dtype), (b.shape, b.dtype), "shape and dtype of a learned leaf")


def _check_refusals(make: Callable[..., Agent], agent: Agent) -> None:
    """Check that wrong spaces and hyper-parameters are refused by name."""
    observations, actions = agent.observation_space, agent.action_space
    unbounded = Box((-np.inf,), (np.inf,), (1,))
    other: Space = Box((-1.0,), (1.0,), (1,)) if isinstance(actions, Discrete) else Discrete(2)
    for wrong in (None, unbounded, other):
        expect_refusal(TypeError, "action space", make, observations, wrong)
    expect_refusal(TypeError, "observation", make, None, actions)
    init = functools.partial(agent.init, jax.random.key(0))
    named = "no hyper-parameter 'nonsense'"
    expect_refusal(TypeError, named, functools.partial(init, nonsense=1.0))
    for name, limits in agent.hyperparameters.items():
        beyond = functools.partial(init, **{name: limits.high * 2 + 1})
        expect_refusal(ValueError, f"{name} must be from", beyond)
