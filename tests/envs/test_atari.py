"""Atari games on the host, against ALE itself."""

import sys

import jax
import numpy as np
import pytest
from optional import require

from accel_rl import agents, envs, replay, train
from accel_rl.envs.atari import atari
from accel_rl.networks import NatureTorso

BATCH = {"game": "Breakout", "repeat_action_probability": 0.0}


def test_what_is_absent_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(ImportError, match=r"need ale_py.*pip install 'accel-rl\[atari\]'"):
        envs.host_environment(atari, game="Breakout")


def test_names_of_ale_are_games():
    with pytest.raises(ValueError, match=r"named like ALE/Breakout-v5, got 'ALE/Breakout-v4'"):
        envs.host_environment("ALE/Breakout-v4")
    require("Atari")
    with pytest.raises(ValueError, match="game must be one of ALE's, got 'None'"):
        envs.host_environment("ALE/None-v5")
    with envs.host_environment("ALE/Breakout-v5", 1, frames=2) as env:
        assert env.observation_space.shape == (84, 84, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "Breakoff"}, "game must be one of ALE's, got 'Breakoff'"),
        ({"game": "Breakout", "frames": 0}, "frames must be"),
        ({"game": "Breakout", "frameskip": 4}, "frameskip must be left to atari"),
    ],
)
def test_bad_arguments(arguments, message):
    require("Atari")
    with pytest.raises(ValueError, match=message):
        atari(**arguments)


def test_a_game_is_ale_s_own():
    """Pictures and rewards of 300 steps are those of ALE's emulator with the protocol by hand."""
    require("Atari")
    import cv2

    env = atari(**BATCH)
    observation, info = env.reset(seed=7)
    console = env.unwrapped.ale
    assert 1 <= info["episode_frame_number"] <= 30
    rng, stack, rewards = np.random.default_rng(0), [observation[..., 0]] * 4, 0
    for _ in range(300):
        action = int(rng.integers(4))
        saved = console.cloneSystemState()
        frames, wanted = [], 0.0
        for _ in range(4):
            wanted += console.act(env.unwrapped._action_set[action])
            frames.append(console.getScreenGrayscale())
            if console.game_over():
                break
        over = console.game_over()
        console.restoreSystemState(saved)
        observation, reward, terminated, truncated, _ = env.step(action)
        assert (reward, terminated, truncated) == (wanted, over, False)
        rewards += reward
        if over:
            break
        newest = cv2.resize(np.maximum(*frames[-2:]), (84, 84), interpolation=cv2.INTER_AREA)
        stack = [*stack[1:], newest]
        np.testing.assert_array_equal(observation, np.stack(stack, -1))
    assert rewards > 0


def test_clipped_rewards_are_signs():
    require("Atari")
    found = []
    for clip in (False, True):
        env = atari("MsPacman", clip_rewards=clip, repeat_action_probability=0.0)
        env.reset(seed=1)
        rng = np.random.default_rng(0)
        found.append([env.step(rng.integers(9))[1] for _ in range(200)])
    assert max(found[0]) > 1
    np.testing.assert_array_equal(found[1], np.sign(found[0]))


@pytest.mark.long  # compiles a large network
def test_training_in_processes():
    require("Atari")
    with envs.host_environment(atari, 2, "processes", **BATCH) as env:
        assert env.observation_space.shape == (84, 84, 4)
        assert env.observation_space.dtype == np.uint8
        agent = agents.dqn(env.observation_space, env.action_space, torso=NatureTorso(32))
        example = train.example(env.environment, agent)
        buffer = replay.make(example, capacity=256, batch_size=8, num_envs=2)
        program = train.make(env.environment, agent, buffer, num_envs=2, learning_starts=32)
        result = train.pipelined(program, jax.random.key(0), 64, env=env, period=32)
    assert result.rows[-1]["steps"] == 64
    assert np.isfinite(result.rows[-1]["loss"])
