"""Wrappers of episodes and rewards, and of all kinds: counted again in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from counting import ENVS, STEPS, counting, play

from accel_rl import envs
from accel_rl.envs import wrappers
from accel_rl.testing.environment import check_environment

WRAPPED = {
    "time_limit": lambda: wrappers.time_limit(envs.environment("CartPole-v1"), 9),
    "time_limit of a table": lambda: wrappers.time_limit(envs.environment("FrozenLake-v1"), 5),
    "scale_rewards": lambda: wrappers.scale_rewards(envs.environment("Pendulum-v1"), 0.1),
    "clip_rewards": lambda: wrappers.clip_rewards(envs.environment("Pendulum-v1"), -5, -1),
    "normalise": lambda: wrappers.normalise_observations(envs.environment("CartPole-v1")),
    "flatten": lambda: wrappers.flatten_observations(envs.environment("Catch-bsuite")),
    "cast": lambda: wrappers.cast_observations(envs.environment("Catch-bsuite"), np.uint8),
    "one_hot": lambda: wrappers.one_hot(envs.environment("FrozenLake-v1")),
    "statistics": lambda: wrappers.episode_statistics(envs.environment("CartPole-v1")),
    "frame_stack": lambda: wrappers.frame_stack(envs.environment("CartPole-v1"), 3),
    "several": lambda: wrappers.normalise_observations(
        wrappers.frame_stack(
            wrappers.scale_rewards(
                wrappers.episode_statistics(wrappers.time_limit(envs.environment("Acrobot-v1"), 7)),
                0.5,
            ),
            2,
        )
    ),
    "the tests' own": counting,
}


QUICK = ("time_limit of a table", "frame_stack", "the tests' own")


@pytest.mark.parametrize("name", quick.only(QUICK, WRAPPED))
def test_contract(name):
    check_environment(WRAPPED[name](), steps=20)


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize(
    ("length", "limit"),
    [
        (7, 3),
        (3, 7),
        (5, 5),
        pytest.param(100, 8, marks=pytest.mark.slow),
        pytest.param(4, 1, marks=pytest.mark.slow),
    ],
)
def test_time_limit_counts_each_episode(length, limit, truncates):
    env = wrappers.time_limit(counting(length, truncates), limit)
    first, state, (_, observation, _, terminated, truncated, info) = play(env)
    episode = min(length, limit)
    time = np.arange(1, STEPS + 1) % episode  # since the last stop
    over = time == 0
    for each in range(ENVS):
        ended = over & (length <= limit) & (not truncates)
        cut = over & ((limit <= length) | truncates)
        np.testing.assert_array_equal(terminated[:, each], ended)
        np.testing.assert_array_equal(truncated[:, each], cut)
        np.testing.assert_array_equal(observation[:, each, 0], time)
        np.testing.assert_array_equal(
            info["final_observation"][:, each, 0], np.where(over, episode, time)
        )
    # The start is drawn anew with each episode, and stays as long as it goes on.
    starts = np.concatenate([first[None, :, 1], observation[..., 1]])
    np.testing.assert_array_equal(np.diff(starts, axis=0) != 0, np.tile(over[:, None], ENVS))
    np.testing.assert_array_equal(info["final_observation"][..., 1], starts[:-1])
    np.testing.assert_array_equal(state.time, time[-1])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: env,
        lambda env: wrappers.frame_stack(wrappers.episode_statistics(env), 2),
        lambda env: wrappers.normalise_observations(env, wrappers.RunningStatistics.none((2,))),
    ],
)
def test_time_limit_refuses_statistics_that_it_would_forget(wrap):
    env = wrap(wrappers.normalise_observations(counting()))
    with pytest.raises(ValueError, match="time_limit must be put inside of normalise_obs"):
        wrappers.time_limit(env, 3)


@pytest.mark.long  # compiles two wrappers
def test_given_statistics_survive_a_time_limit():
    given = wrappers.RunningStatistics(jnp.float32(9), jnp.float32([1, 1]), jnp.float32([4, 4]))
    env = wrappers.time_limit(wrappers.normalise_observations(counting(), given), 3)
    check_environment(env, steps=8)
    _, state, _ = play(env, 8)
    np.testing.assert_array_equal(state.env.statistics.count, [9] * ENVS)


def test_time_limit_is_the_environment_until_it_stops():
    env = envs.environment("MountainCar-v0")
    limited = wrappers.time_limit(env, 10)
    observation, state = limited.reset(jax.random.key(0))
    alone, inner = env.reset(jax.random.key(0))
    np.testing.assert_array_equal(observation, alone)
    one, other = jax.jit(env.step), jax.jit(limited.step)
    for time in range(10):
        alone, inner, *_ = one(jax.random.key(time), inner, 2)
        *_, terminated, truncated, info = (given := other(jax.random.key(time), state, 2))
        state = given[1]
        np.testing.assert_allclose(info["final_observation"], alone, rtol=1e-6)
        assert (bool(terminated), bool(truncated)) == (False, time == 9)
    assert -0.6 <= given[0][0] <= -0.4
    assert given[0][1] == 0
    assert state.time == 0


def test_rewards_are_scaled_and_clipped():
    _, _, (_, _, reward, *_) = play(counting())
    assert (reward < -1.5).any()
    assert (reward > 2.5).any()
    _, _, (_, _, scaled, *_) = play(wrappers.scale_rewards(counting(), -0.25))
    np.testing.assert_allclose(scaled, -0.25 * reward, rtol=1e-6)
    _, _, (_, _, clipped, *_) = play(wrappers.clip_rewards(counting()))
    np.testing.assert_array_equal(clipped, np.clip(reward, -1, 1))
    _, _, (_, _, clipped, *_) = play(wrappers.clip_rewards(counting(), -1.5, 2.5))
    np.testing.assert_array_equal(clipped, np.clip(reward, -1.5, 2.5))
    assert clipped.dtype == scaled.dtype == np.float32


@pytest.mark.parametrize(
    "function",
    [
        lambda reward: reward.astype(jnp.float16),
        lambda reward: 3.0,  # of a weak type, if left alone
    ],
)
def test_mapped_rewards_stay_float32(function):
    env = wrappers.map_rewards(counting(), function)
    _, state = env.reset(jax.random.key(0))
    reward = env.step(jax.random.key(0), state, jnp.full(1, 3.0))[2]
    assert (reward.dtype, reward.weak_type, float(reward)) == (jnp.float32, False, 3.0)


def test_a_scale_may_be_swept():
    def second(factor):
        env = wrappers.scale_rewards(counting(), factor)
        _, state = env.reset(jax.random.key(0))
        return env.step(jax.random.key(0), state, jnp.ones(1))[2]

    np.testing.assert_allclose(jax.vmap(second)(jnp.asarray([0.5, -3.0])), [0.5, -3.0])


@pytest.mark.parametrize("truncates", [False, True])
def test_statistics_count_whole_episodes(truncates):
    _, _, (_, _, reward, terminated, truncated, info) = play(
        wrappers.episode_statistics(counting(4, truncates))
    )
    for each in range(ENVS):
        total, length = 0.0, 0
        for time in range(STEPS):
            total, length = total + reward[time, each], length + 1
            np.testing.assert_allclose(info["episode_return"][time, each], total, atol=1e-4)
            assert info["episode_length"][time, each] == length
            if terminated[time, each] or truncated[time, each]:
                total, length = 0.0, 0
    assert (terminated | truncated).sum() == ENVS * (STEPS // 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda env: wrappers.time_limit(env, 0), ValueError, "steps must be from 1 to .* got 0"),
        (lambda env: wrappers.time_limit(env, 2**31), ValueError, "steps must be from 1"),
        (lambda env: wrappers.time_limit(env, 2.0), TypeError, "steps must be an int, got 2.0"),
        (lambda env: wrappers.time_limit(env, True), TypeError, "steps must be an int"),
        (lambda env: wrappers.clip_rewards(env, 1, 1), ValueError, "low must be below high"),
        (lambda env: wrappers.clip_rewards(env, np.nan), ValueError, "low must be below high"),
        (lambda env: wrappers.frame_stack(env, 0), ValueError, "frames must be at least 1"),
        (lambda env: wrappers.one_hot(env), TypeError, "one_hot needs Discrete observations"),
        (
            lambda env: wrappers.normalise_observations(env, epsilon=0),
            ValueError,
            "epsilon must be above 0",
        ),
        (
            lambda env: wrappers.normalise_observations(env, clip=-1),
            ValueError,
            "clip must be above 0",
        ),
        (
            lambda env: wrappers.normalise_observations(
                env, wrappers.RunningStatistics.none((3, 2))
            ),
            ValueError,
            r"of shape \(2,\), got \(3, 2\): merged",
        ),
        (
            lambda env: wrappers.cast_observations(env, np.uint8),
            ValueError,
            "dtype must hold the bounds of counting's observations, got uint8",
        ),
        (
            lambda env: wrappers.cast_observations(env, np.complex64),
            ValueError,
            "dtype must hold",
        ),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call(counting())
