"""Record of one greedy episode, against the environment stepped with the same actions."""

import jax
import numpy as np
import pytest

from accel_rl import agents, envs, train

KEY = jax.random.key(3)


@pytest.fixture(scope="module")
def parts():
    env = envs.environment("CartPole-v1")
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(8,))
    return env, agent, agent.policy(agent.init(jax.random.key(0)))


def test_steps_are_the_environment_s(parts):
    env, agent, policy = parts
    episode = train.record(env, agent, policy, KEY)
    reset_key, step_key = jax.random.split(KEY)
    observation, state = env.reset(reset_key)
    length = len(episode.rewards)
    for time in range(length):
        np.testing.assert_allclose(episode.observations[time], observation, rtol=1e-5, atol=1e-7)
        action, _ = agent.act(policy, (), observation[None], KEY, time, explore=False)
        assert episode.actions[time] == action[0]
        _, env_key = jax.random.split(jax.random.fold_in(step_key, time))
        observation, state, reward, terminated, _, info = env.step(env_key, state, action[0])
        assert episode.rewards[time] == reward
        assert terminated == (time == length - 1)
    final = info["final_observation"]
    np.testing.assert_allclose(episode.observations[-1], final, rtol=1e-5, atol=1e-7)
    assert episode.terminated
    assert length < 500  # an untrained policy drops the pole


def test_an_episode_is_cut_after_max_steps(parts):
    episode = train.record(*parts, KEY, max_steps=4)
    assert episode.observations.shape == (5, 4)
    assert not episode.terminated
    with pytest.raises(ValueError, match="max_steps must be at least 1, got 0"):
        train.record(*parts, KEY, max_steps=0)
