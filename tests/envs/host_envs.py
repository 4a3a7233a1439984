"""Gymnasium environments that do odd things, importable from other processes."""

import os
import time

import gymnasium
import numpy as np


class Pixels(gymnasium.Env):
    """Images of one brightness, which counts the steps; an episode is `length` steps long."""

    def __init__(self, length=3, in_place=True):
        self.observation_space = gymnasium.spaces.Box(0, 255, (4, 4, 1), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length, self.in_place = length, in_place
        self.image = np.zeros((4, 4, 1), np.uint8)
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._observe(), {}

    def step(self, action):
        self.count += 1
        observation = self._observe()
        return observation, float(action), False, self.count == self.length, {}

    def _observe(self):
        self.image[:] = self.count
        return self.image if self.in_place else self.image.copy()


class Sleeper(Pixels):
    def step(self, action):
        time.sleep(0.1)
        return super().step(action)


class Dier(Pixels):
    """Ends its process at the second step."""

    def step(self, action):
        if self.count == 1:
            os._exit(7)
        return super().step(action)


class Raiser(Pixels):
    def step(self, action):
        if self.count == 1:
            raise FloatingPointError("the wheel came off, 100 %")
        return super().step(action)


class Unmakable(Pixels):
    def __init__(self):
        raise OSError("no such display")


class Closer(Pixels):
    """Counts in `closed` those that were closed, of which the first and the last raise.

    No more than `most` can be made.
    """

    def __init__(self, made, closed, most=9):
        if len(made) == most:
            raise OSError("no such display")
        super().__init__()
        self.number, self.closed = len(made), closed
        made.append(self.number)

    def close(self):
        self.closed.append(self.number)
        if self.number in (0, 2):
            raise ConnectionError("closed badly")


class Wide(gymnasium.Env):
    """Observations and actions of 64 bits."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float64)
        self.action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2), {}

    def step(self, action):
        assert action.dtype == np.float32
        return np.full(2, action[0] / 2, np.float64), 0.5, False, False, {}


class Dictionary(Pixels):
    def __init__(self):
        super().__init__()
        self.observation_space = gymnasium.spaces.Dict({"image": self.observation_space})
