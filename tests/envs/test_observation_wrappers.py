"""Wrappers of observations: each counted again in NumPy from what the environment gave."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import ENVS, STEPS, counting, play

from accel_rl import envs
from accel_rl.envs import wrappers
from accel_rl.types import Box, Discrete


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
