"""The gymnax environments against Gymnasium's own stepping, and the contract of gymnax 1.0."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from accel_rl import envs
from accel_rl.envs.tabular_env import EnvState


def at(index):
    return EnvState(time=jnp.int32(0), index=jnp.int32(index), terminated=jnp.bool_(False))


def rollout(env, params, state, actions):
    """Steps with auto-reset; gives the final observations and the rest of each step."""

    def advance(state, action_and_key):
        action, key = action_and_key
        _, state, reward, terminated, truncated, info = env.step(key, state, action, params)
        return state, (info["final_observation"], reward, terminated, truncated)

    keys = jax.random.split(jax.random.key(0), len(actions))
    return jax.lax.scan(advance, state, (jnp.asarray(actions), keys))[1]


@pytest.mark.parametrize(
    ("name", "gymnasium_name", "limit", "noise"),
    [
        ("Taxi-v3", "Taxi-v4", 200, 1.0),
        ("Taxi-v3", "Taxi-v4", 200, 0.0),
        ("CliffWalking-v1", "CliffWalking-v1", 50, 1.0),
        ("CliffWalking-v1", "CliffWalking-v1", 50, 0.0),
    ],
)
def test_same_episodes_as_gymnasium(name, gymnasium_name, limit, noise):
    env, params = envs.make(name, time_limit=limit)
    reference = gymnasium.make(gymnasium_name, max_episode_steps=limit)
    run = jax.jit(lambda state, actions: rollout(env, params, state, actions))
    rng = np.random.default_rng(1)
    good = good_actions(reference.unwrapped.P)
    for episode in range(4):
        start, _ = reference.reset(seed=episode)
        state, steps, actions = start, [], []
        while not steps or not (steps[-1][2] or steps[-1][3]):
            random = rng.random() < noise
            actions.append(rng.integers(env.num_actions) if random else good[state])
            state, *rest, _ = reference.step(actions[-1])
            steps.append((state, *rest))
        ended_by_itself = noise == 0
        assert steps[-1][2] == ended_by_itself
        assert steps[-1][3] != ended_by_itself
        padded = np.zeros(limit, np.int32)
        padded[: len(actions)] = actions
        ours = run(at(start), padded)
        for column, expected in zip(ours, zip(*steps, strict=True), strict=True):
            np.testing.assert_array_equal(column[: len(steps)], np.asarray(expected))


def good_actions(table):
    """Actions that reach a rewarding end soonest: plain Q-value sweeps over a deterministic P."""
    values = np.zeros(len(table))
    for _ in range(60):
        q = np.array(
            [
                [o[0][2] + (0 if o[0][3] else values[o[0][1]]) for o in by_action.values()]
                for by_action in table.values()
            ]
        )
        values = q.max(axis=1)
    return q.argmax(axis=1)


def test_truncation_is_not_termination():
    env, params = envs.make("FrozenLake-v1", desc=["SFG"], is_slippery=False, time_limit=2)
    # Left, left: out of time. Right, right: the goal, in the last step allowed. Right, left: back.
    actions = [0, 0, 2, 2, 2, 0]
    final, reward, terminated, truncated = rollout(env, params, at(0), actions)
    assert final.tolist() == [0, 0, 1, 2, 1, 0]
    assert reward.tolist() == [0, 0, 0, 1, 0, 0]
    assert terminated.tolist() == [False, False, False, True, False, False]
    assert truncated.tolist() == [False, True, False, True, False, True]


def test_step_contract():
    env, params = envs.make("FrozenLake-v1", desc=["SG"], is_slippery=False)
    observation, state = env.reset(jax.random.key(0), params)
    assert observation.dtype == jnp.int32
    assert env.observation_space(params).contains(observation)
    assert (env.name, env.num_actions, env.num_states) == ("FrozenLake-v1", 4, 2)
    assert env.action_space(params).n == 4
    step = env.step(jax.random.key(1), state, 2, params)
    observation, state, reward, terminated, truncated, info = step
    assert (observation, reward, terminated, truncated) == (0, 1.0, True, False)
    assert (info["final_observation"], info["discount"]) == (1, 0.0)
    assert (state.index, state.time, state.terminated) == (0, 0, False)
    _, inner, _, _, _ = env.step_env(jax.random.key(1), at(0), 2, params)
    assert env.is_terminated(inner, params)
    assert env.discount(inner, params) == 0.0


def test_no_limit_no_truncation():
    env, params = envs.make("CliffWalking-v1")
    late = at(0).replace(time=jnp.int32(2**30))
    *_, truncated, info = env.step(jax.random.key(0), late, 0, params)
    assert not truncated
    assert info["discount"] == 1.0


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("FrozenLake-v1", {"success_rate": 0.6}),
        pytest.param("Taxi-v4", {"is_rainy": True}, marks=pytest.mark.slow),
    ],
)
def test_random_steps_follow_the_table(name, arguments):
    """Chi-square over 40 (state, action) pairs; false alarm 1e-6 (the seed is fixed besides)."""
    env, params = envs.make(name, **arguments)
    mdp = envs.make_mdp(name, **arguments)
    rng = np.random.default_rng(2)
    states = np.repeat(rng.integers(0, mdp.num_states, 40), 2000)
    actions = np.repeat(rng.integers(0, 4, 40), 2000)
    keys = jax.random.split(jax.random.key(3), len(states))
    step = jax.jit(jax.vmap(lambda k, s, a: env.step(k, at(0).replace(index=s), a, params)))
    info = step(keys, jnp.asarray(states, jnp.int32), jnp.asarray(actions, jnp.int32))[5]
    reached = np.asarray(info["final_observation"]).reshape(40, 2000)
    statistic, freedom = 0.0, 0
    for row in range(40):
        expected = np.zeros(mdp.num_states)
        here = states[2000 * row], actions[2000 * row]
        np.add.at(expected, np.asarray(mdp.next_state[here]), np.asarray(mdp.probability[here]))
        counts = np.bincount(reached[row], minlength=mdp.num_states)
        possible = expected > 0
        assert counts[~possible].sum() == 0
        gap = counts[possible] - 2000 * expected[possible]
        statistic += (gap**2 / (2000 * expected[possible])).sum()
        freedom += possible.sum() - 1
    assert freedom > 40
    assert scipy.stats.chi2.sf(statistic, freedom) > 1e-6


def test_parameters_can_be_mapped_over():
    maps = [["SFG"], ["SGH"], ["HSG"]]
    pairs = [envs.make("FrozenLake-v1", desc=desc, is_slippery=False) for desc in maps]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[params for _, params in pairs])
    env = pairs[0][0]
    key = jax.random.key(0)

    @jax.jit
    @jax.vmap
    def first_step(params):
        start, state = env.reset(key, params)
        _, _, reward, terminated, _, info = env.step(key, state, 2, params)
        return start, info["final_observation"], reward, terminated

    start, reached, reward, terminated = first_step(stacked)
    assert start.tolist() == [0, 0, 1]
    assert reached.tolist() == [1, 1, 2]
    assert reward.tolist() == [0, 1, 1]
    assert terminated.tolist() == [False, True, True]
