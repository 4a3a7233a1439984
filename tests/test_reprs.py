"""Objects that a notebook shows are short."""

import numpy as np
import pytest

from accel_rl import agents, envs, replay, train
from accel_rl.types import Box

PICTURES = Box(0, 255, (84, 84, 4), np.uint8)


def made():
    env = envs.environment("Breakout-MinAtar")
    spaces = env.observation_space, env.action_space
    agent = agents.dqn(*spaces, torso="convolution", hidden=(8,))
    buffer = replay.make(train.example(env, agent), 64, 8, "per", num_envs=2)
    return env, agent, buffer, train.make(env, agent, buffer, num_envs=2)


def test_bounds_are_one_number_a_few_or_the_extremes():
    assert repr(PICTURES) == "Box(0, 255, (84, 84, 4), uint8)"
    assert repr(Box((-1, -2), (1, 2.5), (2,))) == "Box([-1, -2], [1, 2.5], (2,), float32)"
    assert repr(Box(np.arange(9), 9, (9,))) == "Box([0 ... 8], 9, (9,), float32)"
    assert repr(Box((), (), (0,))) == "Box([], [], (0,), float32)"


@pytest.mark.parametrize("number", range(4))
def test_reprs_fit_a_screen(number):
    shown = repr(made()[number])
    assert len(shown) < 800
    assert "0x" not in shown  # no address of a function
    assert "10, 10, 4" in shown or "[10, 10, 4]" in shown
