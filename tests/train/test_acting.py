"""Acting: what is recorded of environments, against steps taken one by one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from programs import LINE, line_agent, wander

from accel_rl.train import collection
from accel_rl.types import Discrete

ENVS, KEY = 3, jax.random.key(4)
ALL = 5  # environments, with those of another actor
ENV = wander()


def keys_of(rollout):
    return jax.random.split(KEY, (rollout, 1 + ENVS))


def play(agent, rollout):
    """The actor before, and what `collect` gives."""
    policy = jnp.float32(2)
    start = collection.start(ENV, agent, ENVS, policy, jax.random.key(9))
    collect = jax.jit(functools.partial(collection.collect, ENV, agent, num_envs=ALL))
    return start, collect(start, policy, keys_of(rollout), jnp.int32(0))


def by_hand(agent, start, rollout):
    """The same with a loop over steps and over environments; rows of [E] each."""
    step, act = jax.jit(ENV.step), jax.jit(agent.act)
    states = [start.env[e] for e in range(ENVS)]
    observation, memory = np.asarray(start.observation), np.asarray(start.memory)
    chosen = start.action
    rows, keys = [], keys_of(rollout)
    for t in range(rollout):
        now = np.int32(t * ALL)
        action = chosen
        if action is None:
            action, memory = act(jnp.float32(2), memory, observation, keys[t, 0], now)
        each = [step(keys[t, 1 + e], states[e], action[e]) for e in range(ENVS)]
        states = [result[1] for result in each]
        stopped = np.array([bool(result[3] | result[4]) for result in each])
        final = np.stack([result[5]["final_observation"] for result in each])
        memory = np.where(stopped, 0, memory).astype(np.int32)
        row = {
            "observation": observation,
            "action": np.asarray(action),
            "reward": np.array([result[2] for result in each]),
            "discount": np.float32([not result[3] for result in each]),
            "truncated": np.array([bool(result[4]) for result in each]),
            "next_observation": final,
            "stopped": stopped,
        }
        observation = np.stack([result[0] for result in each])
        if agent.needs_next_action:
            row["extras"] = np.asarray(act(jnp.float32(2), memory, final, keys[t, 0], now)[0])
            chosen, memory = act(jnp.float32(2), memory, observation, keys[t, 0], now)
        rows.append(row)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}, memory, observation


@pytest.mark.parametrize("looks_ahead", [False, True])
@pytest.mark.parametrize("rollout", quick.only([30], [1, 30]))
def test_records_what_happened(rollout, looks_ahead):
    agent = line_agent(needs_next_action=looks_ahead)
    start, (after, found, episodes) = play(agent, rollout)
    wanted, memory, observation = by_hand(agent, start, rollout)
    stopped = wanted.pop("stopped")
    for name, values in wanted.items():
        leaf = np.asarray(getattr(found, name))
        leaf = leaf[None] if rollout == 1 else leaf
        assert leaf.shape[:2] == (rollout, ENVS)
        np.testing.assert_allclose(leaf, values, rtol=1e-6, err_msg=name)
    assert looks_ahead == (found.extras is not None)
    np.testing.assert_array_equal(after.memory, memory)
    np.testing.assert_array_equal(after.observation, observation)
    # Episodes: from the rows alone.
    total, length, sums = np.zeros(ENVS), np.zeros(ENVS), []
    for t in range(rollout):
        total, length = total + wanted["reward"][t], length + 1
        sums += [(total[e], length[e]) for e in np.flatnonzero(stopped[t])]
        total, length = np.where(stopped[t], 0, total), np.where(stopped[t], 0, length)
    assert int(episodes.count) == len(sums)
    if sums:
        wanted_sums = np.sum(sums, axis=0)
        np.testing.assert_allclose(episodes.episode_return, wanted_sums[0], rtol=1e-5)
        np.testing.assert_allclose(episodes.episode_length, wanted_sums[1])
    np.testing.assert_allclose(after.episode_return, total, rtol=1e-5)
    np.testing.assert_array_equal(after.episode_length, length)
    if rollout > 1:
        assert len(sums) > 5


def test_what_is_remembered_starts_anew_with_each_episode():
    """The agent counts its actions; the environment the steps of the episode."""
    for looks_ahead in (False, True):
        _, (after, *_) = play(line_agent(looks_ahead), 30)
        chosen_already = int(looks_ahead)
        np.testing.assert_array_equal(after.memory, after.observation[:, 0] + chosen_already)


def test_the_next_action_is_the_one_that_is_executed():
    """But where an episode stopped: there another state follows."""
    _, (after, found, _) = play(line_agent(needs_next_action=True), 30)
    stopped = np.asarray(found.truncated | (found.discount == 0))
    following = np.concatenate([found.action[1:], np.asarray(after.action)[None]])
    same = (np.asarray(found.extras) == following)[..., 0]
    assert same[~stopped].all()
    # This agent's actions do not depend on what it sees; that they are drawn for the final
    # observation is tested with SARSA, in test_tabular_agent.py.
    np.testing.assert_array_equal(
        found.next_observation[:-1][~stopped[:-1]], found.observation[1:][~stopped[:-1]]
    )
    assert (np.asarray(found.observation[1:])[stopped[:-1]] == 0).all()


def test_steps_are_counted_over_all_environments():
    agent = line_agent()

    def act(policy, memory, observation, key, step, explore=True):
        return jnp.broadcast_to(jnp.asarray(step, jnp.float32), observation.shape), memory

    agent = agent._replace(act=act)
    _, (_, found, _) = play(agent, 4)
    np.testing.assert_array_equal(found.action[..., 0], np.repeat([[0], [5], [10], [15]], ENVS, 1))


@pytest.mark.parametrize("looks_ahead", [False, True])
def test_the_example_is_what_is_recorded(looks_ahead):
    agent = line_agent(looks_ahead)
    example = collection.example(ENV, agent)
    _, (_, found, _) = play(agent, 1)
    assert jax.tree.structure(example) == jax.tree.structure(found)
    for spec, leaf in zip(jax.tree.leaves(example), jax.tree.leaves(found), strict=True):
        assert ((ENVS, *spec.shape), spec.dtype) == (leaf.shape, leaf.dtype)


def test_the_example_of_discrete_actions():
    example = collection.example(ENV, line_agent()._replace(action_space=Discrete(3)))
    assert (example.action.shape, example.action.dtype) == ((), np.int32)
    assert example.observation.shape == LINE.shape
