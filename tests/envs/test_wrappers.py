"""Wrappers: each counted again in NumPy from what the wrapped environment gave."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick

from accel_rl import envs
from accel_rl.envs import wrappers
from accel_rl.testing.environment import check_environment, random_actions
from accel_rl.types import Box, Discrete, Environment

ENVS, STEPS = 3, 60


@dataclasses.dataclass(frozen=True)
class CountState:
    """How far a count has come, and from where; a pytree."""

    start: jax.Array  # [] float32, drawn at reset
    time: jax.Array  # [] int32


jax.tree_util.register_dataclass(CountState, ["start", "time"], [])


def counting(length=7, truncates=False):
    """Observes (time, start), pays the action times time, stops after `length` steps."""

    def observe(state):
        return jnp.stack([state.time.astype(jnp.float32), state.start])

    def reset(key):
        state = CountState(jax.random.uniform(key, (), jnp.float32), jnp.int32(0))
        return observe(state), state

    def step(key, state, action):
        action = jnp.asarray(action)
        if action.shape != (1,):
            raise ValueError(f"an action must have the shape (1,), got {action!r}")
        after = CountState(state.start, state.time + 1)
        stopped = after.time >= length
        first, fresh = reset(key)
        final = observe(after)
        observation, state = jax.tree.map(
            lambda new, old: jnp.where(stopped, new, old), (first, fresh), (final, after)
        )
        reward = action[0] * after.time.astype(jnp.float32)
        no = jnp.zeros_like(stopped)
        flags = (no, stopped) if truncates else (stopped, no)
        return observation, state, reward, *flags, {"final_observation": final}

    space = Box((0.0, 0.0), (np.inf, 1.0), (2,))
    return Environment("counting", space, Box((-2.0,), (2.0,), (1,)), reset, step)


def play(env, steps=STEPS, seed=0):
    """First observations [ENVS, ...], and of each step [steps, ENVS, ...], actions among them."""
    actions = random_actions(env.action_space, (steps, ENVS), seed)

    @jax.jit
    def run(keys):
        def one(state, inputs):
            observation, state, *rest = jax.vmap(env.step)(inputs[0], state, inputs[1])
            return state, (observation, *rest)

        observation, state = jax.vmap(env.reset)(keys[0])
        state, played = jax.lax.scan(one, state, (keys[1:], actions))
        return observation, state, played

    keys = jax.random.split(jax.random.key(seed), (steps + 1, ENVS))
    first, state, played = jax.tree.map(np.asarray, run(keys))
    return first, state, (np.asarray(actions), *played)


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


@pytest.mark.parametrize(
    "function",
    [
        lambda reward: reward > 0,
        lambda reward: reward.astype(jnp.int32),
        lambda reward: reward[None],
        lambda reward: (reward, reward),
    ],
)
def test_mapped_rewards_must_be_float_scalars(function):
    with pytest.raises(TypeError, match="function must give a float scalar, got "):
        wrappers.map_rewards(counting(), function)


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


def seen_by(first, observation, info, stopped, each):
    """Observations of one environment in the order in which they were made."""
    seen = [first[each]]
    for time in range(STEPS):
        seen.append(info["final_observation"][time, each])
        if stopped[time, each]:
            seen.append(observation[time, each])
    return np.asarray(seen, np.float64)


def test_observations_are_normalised_by_what_was_seen():
    first, _, (_, observation, _, terminated, truncated, info) = play(counting())
    env = wrappers.normalise_observations(counting(), epsilon=1e-3, clip=2.0)
    normal_first, state, (_, normal, *_, normal_info) = play(env)
    assert env.observation_space == Box((-2.0, -2.0), (2.0, 2.0), (2,))
    np.testing.assert_array_equal(normal_first, 0)
    stopped = terminated | truncated
    for each in range(ENVS):
        seen = seen_by(first, observation, info, stopped, each)

        def expected(count, seen=seen):
            mean, variance = seen[:count].mean(0), seen[:count].var(0)
            return np.clip((seen[count - 1] - mean) / np.sqrt(variance + 1e-3), -2, 2)

        count = 1
        for time in range(STEPS):
            count += 1
            np.testing.assert_allclose(
                normal_info["final_observation"][time, each], expected(count), atol=1e-3
            )
            count += stopped[time, each]
            np.testing.assert_allclose(normal[time, each], expected(count), atol=1e-3)
        assert state.statistics.count[each] == count == len(seen)
        np.testing.assert_allclose(state.statistics.mean[each], seen.mean(0), rtol=1e-5)
        np.testing.assert_allclose(state.statistics.variance[each], seen.var(0), rtol=1e-4)
    assert np.abs(normal).max() == 2


def test_statistics_of_several_environments_are_merged():
    first, _, (_, observation, _, terminated, truncated, info) = play(counting())
    _, state, _ = play(wrappers.normalise_observations(counting()))
    stopped = terminated | truncated
    seen = [seen_by(first, observation, info, stopped, each) for each in range(ENVS)]
    together = np.concatenate(seen)
    merged = jax.tree.map(jnp.asarray, state.statistics).merged()
    assert merged.count == len(together)
    np.testing.assert_allclose(merged.mean, together.mean(0), rtol=1e-5)
    np.testing.assert_allclose(merged.variance, together.var(0), rtol=1e-4)

    env = wrappers.normalise_observations(counting(), merged, epsilon=1e-6)
    normal_first, after, (_, normal, *_) = play(env)
    deviation = np.sqrt(together.var(0) + 1e-6)
    np.testing.assert_allclose(normal_first, (first - together.mean(0)) / deviation, atol=1e-4)
    np.testing.assert_allclose(normal, (observation - together.mean(0)) / deviation, atol=1e-4)
    assert (after.statistics.count == len(together)).all(), "given statistics do not change"


def test_statistics_of_unequal_counts_are_merged():
    random = np.random.default_rng(0)
    parts = [random.normal(m, s, (n, 2)) for m, s, n in ((0, 1, 5), (9, 3, 50), (-4, 0.1, 500))]
    each = []
    for part in parts:
        statistics = wrappers.RunningStatistics.none((2,))
        statistics, _ = jax.lax.scan(
            lambda statistics, x: (statistics.seen(x), None), statistics, jnp.float32(part)
        )
        each.append(statistics)
    merged = jax.tree.map(lambda *leaves: jnp.stack(leaves), *each).merged()
    together = np.concatenate(parts)
    np.testing.assert_allclose(merged.mean, together.mean(0), rtol=1e-5)
    np.testing.assert_allclose(merged.variance, together.var(0), rtol=1e-4)


def test_statistics_stay_sound_after_many_observations():
    """Where a float32 count no longer grows, the variance does not either."""
    statistics = wrappers.RunningStatistics(
        jnp.float32(2**24), jnp.float32([5.0]), jnp.float32([4.0])
    )
    after = statistics.seen(jnp.float32([7.0])).seen(jnp.float32([3.0]))
    assert after.count == 2**24
    np.testing.assert_allclose(after.mean, 5, rtol=1e-6)
    np.testing.assert_allclose(after.variance, 4, rtol=1e-6)


def test_observations_are_flattened_and_cast():
    catch = envs.environment("Catch-bsuite")
    first, _, (_, observation, *_, info) = play(catch, 20)
    flat = wrappers.flatten_observations(catch)
    assert flat.observation_space == Box((0.0,) * 50, (1.0,) * 50, (50,), np.dtype(np.int32))
    flat_first, _, (_, flat_observation, *_, flat_info) = play(flat, 20)
    np.testing.assert_array_equal(flat_first, first.reshape(ENVS, 50))
    np.testing.assert_array_equal(flat_observation, observation.reshape(20, ENVS, 50))
    final = info["final_observation"]
    np.testing.assert_array_equal(flat_info["final_observation"], final.reshape(20, ENVS, 50))
    for dtype in (np.uint8, np.bool_, np.float16):
        cast = wrappers.cast_observations(catch, dtype)
        assert cast.observation_space == dataclasses.replace(catch.observation_space, dtype=dtype)
        _, _, (_, cast_observation, *_) = play(cast, 20)
        assert cast_observation.dtype == dtype
        np.testing.assert_array_equal(cast_observation.astype(np.int32), observation)


@pytest.mark.parametrize(("bound", "dtype"), [(1e5, np.float16), (1e3, jnp.float8_e4m3fn)])
def test_floats_must_hold_finite_bounds(bound, dtype):
    def bounded(high):
        return wrappers.map_observations(
            counting(), lambda x: x, Box((-np.inf, 0), (0, high), (2,))
        )

    with pytest.raises(ValueError, match="dtype must hold the bounds of counting's observations"):
        wrappers.cast_observations(bounded(bound), dtype)
    for held in (0.1 * bound, np.inf):  # what has no bound cannot be known to fit
        assert wrappers.cast_observations(bounded(held), dtype).observation_space.dtype == dtype
    assert wrappers.cast_observations(bounded(bound), jnp.bfloat16)


def test_states_become_one_hot():
    lake = envs.environment("FrozenLake-v1")
    first, _, (_, observation, *_, info) = play(lake)
    env = wrappers.one_hot(lake)
    assert env.observation_space == Box((0.0,) * 16, (1.0,) * 16, (16,))
    hot_first, _, (_, hot, *_, hot_info) = play(env)
    np.testing.assert_array_equal(hot_first, np.eye(16)[first])
    np.testing.assert_array_equal(hot, np.eye(16)[observation])
    np.testing.assert_array_equal(
        hot_info["final_observation"], np.eye(16)[info["final_observation"]]
    )


def test_frames_are_stacked_within_an_episode():
    first, _, (_, observation, _, terminated, truncated, info) = play(counting(5))
    env = wrappers.frame_stack(counting(5), 3)
    inf = np.inf
    assert env.observation_space == Box((0.0,) * 6, (inf, 1.0) * 3, (6,))
    stacked_first, _, (_, stacked, *_, stacked_info) = play(env)
    stopped = terminated | truncated
    np.testing.assert_array_equal(stacked_first, np.tile(first, 3))
    for each in range(ENVS):
        frames = [first[each]] * 3
        for time in range(STEPS):
            frames = [*frames[1:], info["final_observation"][time, each]]
            np.testing.assert_array_equal(
                stacked_info["final_observation"][time, each], np.concatenate(frames)
            )
            if stopped[time, each]:
                frames = [observation[time, each]] * 3
            np.testing.assert_array_equal(stacked[time, each], np.concatenate(frames))


@pytest.mark.long  # compiles an environment of images
def test_frames_of_images_go_into_channels():
    env = wrappers.frame_stack(envs.environment("Breakout-MinAtar"), 2)
    assert env.observation_space.shape == (10, 10, 8)
    _, _, (_, stacked, _, terminated, truncated, _) = play(env, 10)
    goes_on = ~(terminated | truncated)[1:]
    np.testing.assert_array_equal(stacked[1:, ..., :4][goes_on], stacked[:-1, ..., 4:][goes_on])


def test_space_of_mapped_observations_is_checked():
    doubled = wrappers.map_observations(counting(), lambda x: 2 * x, Box((0, 0), (9, 9), (2,)))
    np.testing.assert_array_equal(play(doubled)[0], 2 * play(counting())[0])
    with pytest.raises(ValueError, match=r"function must give elements of .*Discrete.* float32"):
        wrappers.map_observations(counting(), lambda x: x, Discrete(2))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda env: wrappers.time_limit(env, 0), ValueError, "steps must be from 1 to .* got 0"),
        (lambda env: wrappers.time_limit(env, 2**31), ValueError, "steps must be from 1"),
        (lambda env: wrappers.time_limit(env, 2.0), TypeError, "steps must be an int, got 2.0"),
        (lambda env: wrappers.time_limit(env, True), TypeError, "steps must be an int"),
        (lambda env: wrappers.scale_rewards(env, 0), ValueError, "factor must be .* got 0"),
        (lambda env: wrappers.scale_rewards(env, np.nan), ValueError, "factor must be finite"),
        (lambda env: wrappers.clip_rewards(env, 1, 1), ValueError, "low must be below high"),
        (lambda env: wrappers.clip_rewards(env, np.nan), ValueError, "low must be below high"),
        (lambda env: wrappers.frame_stack(env, 0), ValueError, "frames must be from 1"),
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


@pytest.mark.parametrize(
    "wrap",
    [
        wrappers.flatten_observations,
        wrappers.normalise_observations,
        lambda env: wrappers.frame_stack(env, 2),
        lambda env: wrappers.cast_observations(env, np.int16),
    ],
)
def test_wrappers_of_boxes_refuse_states(wrap):
    with pytest.raises(TypeError, match=r"needs Box observations, .*Discrete.*: use one_hot"):
        wrap(envs.environment("FrozenLake-v1"))


@pytest.mark.parametrize(
    "wrap",
    [
        *(wrappers.flatten_observations, wrappers.normalise_observations, wrappers.one_hot),
        *(wrappers.episode_statistics, wrappers.clip_rewards),
        lambda env: wrappers.time_limit(env, 2),
        lambda env: wrappers.scale_rewards(env, 2),
        lambda env: wrappers.map_rewards(env, jnp.tanh),
        lambda env: wrappers.map_observations(env, jnp.tanh, Discrete(2)),
    ],
)
def test_wrappers_refuse_what_is_no_environment(wrap):
    with pytest.raises(TypeError, match="env must be an Environment"):
        wrap(envs.make("CartPole-v1")[0])


def test_an_observation_without_axes_cannot_be_stacked():
    scalar = wrappers.map_observations(counting(), jnp.sum, Box((0.0,), (9.0,), ()))
    with pytest.raises(ValueError, match="one axis or more"):
        wrappers.frame_stack(scalar, 2)
