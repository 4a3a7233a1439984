"""`train.run` in host environments, against compiled ones and against Gymnasium's own loop."""

import gymnasium
import jax
import numpy as np
import pytest
import walk

from accel_rl import agents, envs, replay, train
from accel_rl.io import Checkpoints

KEY = jax.random.key(5)
LAKE = {"name": "FrozenLake-v1", "is_slippery": False}  # nothing in it is random


def lake(env, **schedule):
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(8,))
    memory = replay.make(train.example(env, agent), 256, 16, num_envs=2)
    return train.make(env, agent, memory, num_envs=2, learning_starts=32, **schedule)


def assert_close(ours, theirs):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), ours, theirs)


@pytest.mark.parametrize("schedule", [{}, {"rollout": 3, "policy_lag": 1, "updates": 2}])
def test_training_is_the_compiled_environment_s(schedule):
    compiled = lake(envs.environment(**LAKE), **schedule)
    expected = train.run(compiled, KEY, 300, period=60)
    with envs.host_environment(num_envs=2, **LAKE) as host:
        program = lake(host.environment, **schedule)
        found = train.run(program, KEY, 300, period=60, env=host)
    assert_close(found.state.agent, expected.state.agent)
    assert_close(found.state.replay, expected.state.replay)
    for ours, theirs in zip(found.rows, expected.rows, strict=True):
        assert ours.keys() == theirs.keys()
        for name in ("steps", "episodes", "episode_return", "episode_length", "updates", "loss"):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-5)


@pytest.mark.parametrize("schedule", [{}, {"rollout": 3}])
def test_seeds_side_by_side_are_the_trainings_of_each(schedule):
    keys = jax.random.split(KEY, 3)
    hyper = {"agent": {"learning_rate": np.float32([1e-3, 3e-3, 1e-2])}}
    found = cart_pole(keys, 6, schedule, hyper)
    for number, key in enumerate(keys):
        own = {"agent": {"learning_rate": hyper["agent"]["learning_rate"][number]}}
        expected = cart_pole(key, 2, schedule, own)
        ours = jax.tree.map(lambda leaf, n=number: leaf[n], found.state)
        assert_close(ours.agent, expected.state.agent)
        assert_close(ours.replay, expected.state.replay)
        for together, alone in zip(found.rows, expected.rows, strict=True):
            for name, values in together["per_seed"].items():
                if name != "seconds":
                    np.testing.assert_allclose(values[number], alone[name], rtol=1e-4, err_msg=name)


def cart_pole(key, num_envs, schedule, hyper):
    """Environments with chance: each has the seed that it has where its training is alone."""
    with (
        envs.host_environment("CartPole-v1", num_envs) as env,
        envs.host_environment("CartPole-v1", 2) as scored,
    ):
        program = lake(env.environment, **schedule)
        evaluation = train.Evaluation(2, every=60, max_steps=50)
        return train.run(
            program, key, 120, period=60, hyper=hyper, evaluation=evaluation, env=env, scored=scored
        )


@pytest.mark.parametrize("executor", ["deterministic", "asynchronous"])
def test_episodes_go_on_over_segments(executor):
    """All walks end within 7 steps; were they begun anew every 4, none could be longer than 4."""
    with envs.host_environment(walk.HostWalk, 4) as host:
        program = walk.program(env=host.environment, learning_starts=64)
        found = train.run(
            program, KEY, 320, period=16, hyper=walk.HYPER, env=host, executor=executor
        )
    assert [row["steps"] for row in found.rows] == list(range(16, 321, 16))
    lengths = np.array([row["episode_length"] for row in found.rows])
    episodes = np.array([row["episodes"] for row in found.rows])
    total = np.nansum(lengths * episodes)
    assert 320 - 4 * walk.LIMIT < total <= 320
    assert np.nanmax(lengths) > 4


def test_a_training_that_is_resumed_goes_on(tmp_path):
    with envs.host_environment(num_envs=2, **LAKE) as host:
        program = lake(host.environment)
        kept = Checkpoints(tmp_path / "run", every=60)
        first = train.run(program, KEY, 120, period=60, env=host, checkpoints=kept)
        host.reset(0)  # new episodes, as in another process
        again = train.run(program, KEY, 240, period=60, env=host, checkpoints=kept, resume=True)
    assert [row["steps"] for row in again.rows] == [32, 92, 120, 152, 212, 240]
    assert [row["seconds"] for row in again.rows[:3]] == [row["seconds"] for row in first.rows]
    assert int(again.state.iteration) == 120


def test_evaluation_plays_gymnasium_s_episodes():
    """One episode in each environment; then a fixed number in each, of whatever length."""
    with envs.host_environment("CartPole-v1", 3) as env:
        agent = agents.dqn(env.observation_space, env.action_space, hidden=(8,))
        policy = agent.policy(agent.init(jax.random.key(0)))
        found = train.host_evaluator(env, agent, 3)(policy, 17)
        cut = train.host_evaluator(env, agent, 3, max_steps=4)(policy, 17)
    expected = []
    for seed in (17, 18, 19):
        single = gymnasium.make("CartPole-v1")
        observation, _ = single.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action, _ = agent.act(policy, (), observation[None], KEY, 0, explore=False)
            observation, reward, *stops, _ = single.step(int(action[0]))
            total, ended = total + reward, any(stops[:2])
        expected.append(total)
    assert sorted(found) == sorted(expected)
    np.testing.assert_array_equal(cut, 4)


class Lengths(gymnasium.Env):
    """Episodes of 1 and 9 steps in turn, by environment; each step gives 1."""

    made = 0

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length = (1, 9)[Lengths.made % 2]
        Lengths.made += 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.zeros(1, np.float32), 1.0, self.time == self.length, False, {}


def test_short_episodes_do_not_crowd_out_long_ones():
    with envs.host_environment(Lengths, 2) as env:
        agent = agents.dqn(env.observation_space, env.action_space, hidden=(4,))
        policy = agent.policy(agent.init(jax.random.key(0)))
        returns = train.host_evaluator(env, agent, 6)(policy, 0)
        cut = train.host_evaluator(env, agent, 4, max_steps=5)(policy, 0)
    assert sorted(returns) == [1, 1, 1, 9, 9, 9]
    assert sorted(cut) == [1, 1, 5, 5]


class Endless(Lengths):
    """An episode that never ends by itself."""

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, False, {}


def test_episodes_that_never_end_are_cut():
    """Those that one environment plays after another too."""
    with envs.host_environment(Endless, 2) as env:
        agent = agents.dqn(env.observation_space, env.action_space, hidden=(4,))
        policy = agent.policy(agent.init(jax.random.key(0)))
        returns = train.host_evaluator(env, agent, 5, max_steps=3)(policy, 0)
    assert returns.tolist() == [3] * 5


def test_a_recorded_episode_is_the_environment_s():
    with envs.host_environment("CartPole-v1", 1) as env:
        agent = agents.dqn(env.observation_space, env.action_space, hidden=(8,))
        policy = agent.policy(agent.init(jax.random.key(0)))
        episode = train.host_record(env, agent, policy, 3)
    single = gymnasium.make("CartPole-v1")
    observation, _ = single.reset(seed=3)
    np.testing.assert_array_equal(episode.observations[0], observation)
    for number, action in enumerate(episode.actions):
        observation, reward, terminated, *_ = single.step(int(action))
        np.testing.assert_array_equal(episode.observations[number + 1], observation)
        assert episode.rewards[number] == reward
    assert terminated
    assert episode.terminated


def test_arguments_that_do_not_go_together():
    with envs.host_environment(num_envs=2, **LAKE) as host:
        program = lake(host.environment)
        with pytest.raises(ValueError, match="key must be a single one for executors other than"):
            train.run(program, jax.random.split(KEY), 100, env=host, executor="deterministic")
        with pytest.raises(ValueError, match="env must have 4 environments, 2 for each training"):
            train.run(program, jax.random.split(KEY), 100, env=host)
        with pytest.raises(ValueError, match="scored must be host environments"):
            train.run(program, KEY, 100, env=host, evaluation=train.Evaluation(2))
        with pytest.raises(ValueError, match=r"executor must be one of fused, determ.*got 'whole'"):
            train.run(program, KEY, 100, env=host, executor="whole")
        with pytest.raises(ValueError, match="env must be a batch of one environment, got 2"):
            train.host_record(host, program.agent, None, 0)
