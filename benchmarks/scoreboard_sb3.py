"""Stable-Baselines3's part of `scoreboard.py`, run by the interpreter of its own environment.

    RIVALS/bin/python benchmarks/scoreboard_sb3.py ALGORITHM ENVIRONMENT --out FILE [--seed N]
        [--steps N]

Trains one seed on one thread with the hyper-parameters of our presets, and evaluates greedy
episodes after every tenth of the steps. FILE gets a line of JSON for each evaluation: steps, the
mean return, and the wall and CPU seconds of training alone. It is written under another name and
renamed at the end, so that a file is a whole training.

SB3's DQN keeps its Huber loss and has no double learning.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import gymnasium
import numpy as np
import stable_baselines3
import torch
from rival_versions import versions_of
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

PACKAGES = ("torch", "stable-baselines3", "gymnasium", "mujoco", "box2d", "gymnax", "jax")


class MinAtar(gymnasium.Env):
    """One of gymnax's games as a Gymnasium environment."""

    def __init__(self, name):
        import gymnax  # late: the other environments do without it
        import jax

        self.game, self.params = gymnax.make(name)
        self.make_key, self.split = jax.random.key, jax.jit(jax.random.split)
        shape = self.game.observation_space(self.params).shape
        self.observation_space = gymnasium.spaces.Box(0, 1, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(self.game.num_actions)
        self.key = self.make_key(0)

    def reset(self, *, seed=None, options=None):
        """Start an episode."""
        if seed is not None:
            self.key = self.make_key(seed)
        self.key, key = self.split(self.key)
        picture, self.state = self.game.reset(key, self.params)
        return np.asarray(picture, np.uint8), {}

    def step(self, action):
        """Take a step."""
        self.key, key = self.split(self.key)
        _, self.state, reward, terminated, truncated, info = self.game.step(
            key, self.state, int(action), self.params
        )
        # The first result is of the next episode already where this one ends.
        picture = np.asarray(info["final_observation"], np.uint8)
        return picture, float(reward), bool(terminated), bool(truncated), {}


class Convolution(BaseFeaturesExtractor):
    """Network of MinAtar's DQN up to the layer of action values, as `networks.ConvTorso`."""

    def __init__(self, space):
        super().__init__(space, 128)
        height, width, channels = space.shape
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(channels, 16, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * (height - 2) * (width - 2), 128),
            torch.nn.ReLU(),
        )

    def forward(self, pictures):
        """Return features [B, 128] of pictures [B, H, W, C]."""
        return self.layers(pictures.permute(0, 3, 1, 2))


def settings(algorithm, environment, steps):
    """Return SB3's arguments for a training, and the number of episodes of an evaluation."""
    if algorithm == "dqn":
        policy = {
            "features_extractor_class": Convolution,
            "net_arch": [],
            "normalize_images": False,
        }
        given = {"learning_rate": 2.5e-4, "buffer_size": 100_000, "learning_starts": 5_000}
        # 250 updates, one for each four steps. No gradient is clipped.
        given.update(target_update_interval=1_000, max_grad_norm=math.inf, policy_kwargs=policy)
        return given, 100
    given = {"batch_size": 256, "train_freq": 1, "gradient_steps": 1}
    if environment.startswith("Pendulum"):
        given.update(learning_rate=1e-3, buffer_size=steps, learning_starts=1_000)
        given.update(tau=0.01 if algorithm == "sac" else 0.02)
        hidden, episodes = [64, 64], 100
    else:
        given.update(learning_rate=3e-4, learning_starts=10_000)
        hidden, episodes = [256, 256], 10
    return {**given, "policy_kwargs": {"net_arch": hidden}}, episodes


def now():
    """Return the process's CPU time and the wall time."""
    return np.array([time.process_time(), time.perf_counter()])


class Evaluation(BaseCallback):
    """Write the mean greedy return after every tenth of the steps."""

    def __init__(self, env, steps, episodes, seed, file):
        super().__init__()
        self.env, self.every, self.episodes = env, steps // 10, episodes
        self.seed, self.file = seed, file

    def _on_training_start(self):
        self.began = now()

    def _on_step(self):
        if self.num_timesteps % self.every == 0:
            before = now()
            cpu, wall = before - self.began
            seeds = range(self.seed + 1_000, self.seed + 1_000 + self.episodes)
            row = {
                "steps": self.num_timesteps,
                "evaluation": float(np.mean([play(self.model, self.env, each) for each in seeds])),
                "seconds": wall,
                "cpu_seconds": cpu,
            }
            print(json.dumps(row), file=self.file, flush=True)
            self.began += now() - before  # evaluation does not count
        return True


def make_model(algorithm, env, seed, **given):
    """Return SB3's agent with these arguments."""
    if algorithm == "td3":
        num = env.action_space.shape[0]
        given["action_noise"] = NormalActionNoise(np.zeros(num), np.full(num, 0.1))
    kind = getattr(stable_baselines3, algorithm.upper())
    return kind("MlpPolicy", env, seed=seed, device="cpu", **given)


def train(algorithm, environment, seed, steps, file):
    """Train; write a row to the file for each evaluation."""
    make = MinAtar if environment.endswith("MinAtar") else gymnasium.make
    given, episodes = settings(algorithm, environment, steps)
    model = make_model(algorithm, Monitor(make(environment)), seed, **given)
    model.learn(steps, callback=Evaluation(make(environment), steps, episodes, seed, file))


def play(model, env, seed):
    """Return the return of a greedy episode."""
    observation, _ = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        ended = terminated or truncated
    return total


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", choices=("sac", "td3", "dqn"))
    parser.add_argument("environment")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    partial = options.out.with_suffix(".partial")
    with partial.open("w") as file:
        print(json.dumps({"versions": versions_of(PACKAGES)}), file=file, flush=True)
        train(options.algorithm, options.environment, options.seed, options.steps, file)
    os.replace(partial, options.out)


if __name__ == "__main__":
    main()
