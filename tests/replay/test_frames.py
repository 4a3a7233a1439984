"""Stacks of frames against Gymnasium's wrapper, which is not asked how it makes them."""

import gymnasium
import jax
import numpy as np
import pytest
from conformance import transitions_of
from reference import Step, after, play, sequence_validity, stacks, target

from accel_rl import replay
from accel_rl.types import Transition

DEPTH, ROWS = 3, 9


class Camera(gymnasium.Env):
    """Frames that count up, over episodes of random lengths."""

    observation_space = gymnasium.spaces.Box(0, 255, (2, 2), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, seed):
        self.rng, self.count = np.random.default_rng(seed), 0

    def frame(self):
        self.count += 1
        return np.full((2, 2), self.count % 256, np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.frame(), {}

    def step(self, action):
        ended = bool(self.rng.random() < 0.15)
        truncated = not ended and bool(self.rng.random() < 0.15)
        return self.frame(), 1.0, ended, truncated, {}


def record(seed, steps):
    """Single frames as they are stored, and the stacks before and after each step."""
    env = gymnasium.wrappers.FrameStackObservation(Camera(seed), DEPTH)
    log, before, following = [], [], []
    stack, _ = env.reset()
    for _ in range(steps):
        later, reward, ended, truncated, _ = env.step(0)
        frames = stack[-1], np.int32(0), np.float32(reward), np.float32(not ended)
        log.append(Step(*frames, truncated, later[-1]))
        before.append(stack)
        following.append(later)
        stack = env.reset()[0] if ended or truncated else later
    return log, before, following


def rows_of(logs, t, has_final):
    return jax.tree.map(lambda x: x[0], transitions_of([[log[t] for log in logs]], has_final))


def memory(logs, has_final, **options):
    example = jax.tree.map(lambda x: x[0], rows_of(logs, 0, has_final))
    envs = len(logs)
    made = replay.make(
        example, ROWS * envs, 4, num_envs=envs, frame_stack=DEPTH, least_size=1, **options
    )
    return made, jax.jit(made.add), jax.jit(made.parts[1].gather)


@pytest.mark.parametrize("has_final", [True, False])
def test_as_gymnasium_stacks(has_final):
    steps, gamma = 40, np.float32(0.5)
    records = [record(seed, steps) for seed in range(3)]
    logs = [log for log, _, _ in records]
    for env, (log, before, following) in enumerate(records):
        mine = stacks(log, DEPTH)  # the reference that the other tests here go by
        np.testing.assert_array_equal(mine[0], before, f"environment {env}")
        np.testing.assert_array_equal(mine[1], following, f"environment {env}")
    made, add, gather = memory(logs, has_final)
    state = made.init()
    everywhere = np.arange(ROWS * 3, dtype=np.int32)
    checked = 0
    for t in range(steps):
        state = add(state, rows_of(logs, t, has_final))
        batch = gather(state.store, everywhere, gamma)
        assert batch.observation.dtype == np.uint8
        assert batch.observation.shape == (ROWS * 3, DEPTH, 2, 2)
        for start in range(max(0, t + 1 - (ROWS - DEPTH + 1)), t + has_final):
            for env, (log, before, following) in enumerate(records):
                slot = start % ROWS * 3 + env
                np.testing.assert_array_equal(batch.observation[slot], before[start])
                if has_final or not log[start].stops:
                    np.testing.assert_array_equal(batch.next_observation[slot], following[start])
                    checked += 1
    assert checked > 300


def test_stacks_of_n_step_targets():
    n, gamma = 2, 0.5
    logs = play(np.random.default_rng(4), 30, 2, shape=(2,), dtype=np.int16)
    made, add, gather = memory(logs, True, n_step=n)
    pictures = [stacks(log, DEPTH) for log in logs]
    state = made.init()
    for t in range(30):
        state = add(state, rows_of(logs, t, True))
        batch = gather(state.store, np.arange(ROWS * 2, dtype=np.int32), np.float32(gamma))
        for start in range(max(0, t + 1 - (ROWS - DEPTH + 1)), t + 2 - n):
            for env, log in enumerate(logs):
                slot = start % ROWS * 2 + env
                reward, discount, k = target(log, start, n, gamma)
                np.testing.assert_allclose(batch.reward[slot], reward, rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(batch.discount[slot], discount)
                np.testing.assert_array_equal(batch.observation[slot], pictures[env][0][start])
                np.testing.assert_array_equal(
                    batch.next_observation[slot], pictures[env][1][start + k - 1]
                )


def test_stacks_in_sequences():
    length = 3
    logs = play(np.random.default_rng(5), 30, 2, shape=(2,), dtype=np.int16)
    made, add, gather = memory(logs, True, sequence_length=length)
    pictures = [stacks(log, DEPTH) for log in logs]
    state = made.init()
    for t in range(30):
        state = add(state, rows_of(logs, t, True))
        runs = gather(state.store, np.arange(ROWS * 2, dtype=np.int32))
        assert runs.steps.observation.shape == (ROWS * 2, length, DEPTH, 2)
        complete = range(max(0, t + 1 - (ROWS - DEPTH + 1)), t + 2 - length)
        assert made.size(state) == 2 * len(complete)
        for start in complete:
            for env, log in enumerate(logs):
                slot, run = start % ROWS * 2 + env, slice(start, start + length)
                valid = sequence_validity(log, start, length)
                np.testing.assert_array_equal(runs.valid[slot], valid)
                before, following = (np.stack(picture[run]) for picture in pictures[env])
                np.testing.assert_array_equal(runs.steps.observation[slot], before)
                np.testing.assert_array_equal(runs.steps.next_observation[slot], following)


def test_frames_are_stored_once_and_observations_may_be_trees():
    example = Transition(
        {"eye": np.zeros((4, 4), np.uint8), "arm": np.zeros(3, np.float32)},
        np.int32(0),
        np.float32(0),
        np.float32(1),
    )
    made = replay.make(example, 100, 8, frame_stack=4, least_size=1)
    state = made.init()
    assert state.store.data.observation["eye"].shape == (100, 4, 4)
    (log,) = play(np.random.default_rng(6), 20, 1, truncate=0)
    add = jax.jit(made.add)
    for step in log:
        observation = {
            "eye": np.full((4, 4), step.observation, np.uint8),
            "arm": np.full(3, step.observation),
        }
        item = Transition(observation, step.action, step.reward, step.discount)
        state = add(state, item)
    drawn = jax.jit(made.sample)(state, jax.random.key(0), 1.0, 0.5)
    assert drawn.batch.observation["eye"].shape == (8, 4, 4, 4)
    assert drawn.batch.next_observation["arm"].shape == (8, 4, 3)
    expected = stacks(log, 4)[0]
    for slot, eye, arm in zip(
        drawn.indices, *(drawn.batch.observation[k] for k in ("eye", "arm")), strict=True
    ):
        np.testing.assert_array_equal(eye[:, 0, 0], expected[int(slot)])
        np.testing.assert_array_equal(arm[:, 0], expected[int(slot)])
    assert after(log, 0, has_final=False) == log[1].observation
