"""Greedy episodes, against a loop that plays them one step at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from programs import LINE, line_agent, wander

from accel_rl import agents, envs, tabular, train
from accel_rl.types import Environment

KEY, EPISODES = jax.random.key(8), 6


def paid():
    """Pays what the action says, which without exploring is the policy's."""
    env = wander()

    def step(key, state, action):
        observation, state, reward, terminated, truncated, info = env.step(key, state, action)
        return observation, state, reward + action[0], terminated, truncated, info

    return Environment("paid", LINE, LINE, env.reset, step)


def by_hand(env, agent, policy, max_steps):
    """Returns of the episodes, and their lengths."""
    reset_key, step_key = jax.random.split(KEY)
    keys = jax.random.split(reset_key, EPISODES)
    step, returns, lengths = jax.jit(env.step), [], []
    for episode in range(EPISODES):
        observation, state = env.reset(keys[episode])
        memory, total = agent.memory(1), 0.0
        for time in range(max_steps):
            act_key, env_key = jax.random.split(jax.random.fold_in(step_key, time))
            action, memory = agent.act(
                policy, memory, observation[None], act_key, time, explore=False
            )
            key = jax.random.split(env_key, EPISODES)[episode]
            observation, state, reward, terminated, truncated, _ = step(key, state, action[0])
            total += float(reward)
            if terminated or truncated:
                break
        returns.append(total)
        lengths.append(time + 1)
    return returns, lengths


@pytest.mark.parametrize("max_steps", quick.only([10_000], [3, 10_000]))
def test_is_the_loop_by_hand(max_steps):
    env, agent, policy = paid(), line_agent(), jnp.float32(2)
    evaluate = jax.jit(train.evaluator(env, agent, EPISODES, max_steps))
    wanted, lengths = by_hand(env, agent, policy, max_steps)
    np.testing.assert_allclose(evaluate(policy, KEY), wanted, rtol=1e-5)
    assert len(set(lengths)) > 1
    assert (max(lengths) == 3) == (max_steps == 3)


def test_is_the_exact_return():
    """Of FrozenLake's best policy, within 5 standard errors of what dynamic programming says."""
    env, mdp = envs.environment("FrozenLake-v1"), envs.make_mdp("FrozenLake-v1")
    agent = agents.tabular(tabular.q_learning(), env.observation_space, env.action_space)
    _, action_values = tabular.value_iteration(mdp, 0.99)
    state = agent.init(KEY, epsilon_start=1.0, epsilon_end=1.0)  # it must not explore
    policy = agent.policy(state)
    policy = type(policy)(action_values[None], policy.exploration)
    episodes = 4000
    found = jax.jit(train.evaluator(env, agent, episodes))(policy, KEY)
    assert set(np.unique(found)) == {0, 1}
    exact = float(tabular.episode_return(mdp, tabular.greedy_policy(action_values)))
    assert abs(float(found.mean()) - exact) < 5 * (exact * (1 - exact) / episodes) ** 0.5


@pytest.mark.parametrize(("name", "value"), [("episodes", 0), ("max_steps", 0)])
def test_bad_input(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        train.evaluator(wander(), line_agent(), **{name: value})
