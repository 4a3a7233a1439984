"""Stable-Baselines3's part of `scoreboard.py`, run by the interpreter of its own environment.

    RIVALS/bin/python benchmarks/scoreboard_sb3.py ALGORITHM ENVIRONMENT --out FILE [--seed N]
        [--steps N]

Trains one seed on one thread with SB3's own settings, except networks of (256, 256) and 10,000
steps of random actions, and evaluates ten greedy episodes after every 10,000 steps. FILE gets a
line of JSON for each evaluation: steps, the mean return, and the wall and CPU seconds of training
alone. It is written under another name and renamed at the end, so that a file is a whole training.
"""

import argparse
import json
import os
import time
from pathlib import Path

import gymnasium
import numpy as np
import stable_baselines3
import torch
from rival_versions import versions_of
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise

EVERY, EPISODES = 10_000, 10
STARTS = 10_000  # steps of random actions
PACKAGES = ("torch", "stable-baselines3", "gymnasium", "mujoco", "box2d")


def settings(algorithm, space):
    """Return the arguments that differ from SB3's defaults."""
    given = {"learning_starts": STARTS, "policy_kwargs": {"net_arch": [256, 256]}}
    if algorithm == "td3":
        num = space.shape[0]
        given["action_noise"] = NormalActionNoise(np.zeros(num), np.full(num, 0.1))
        # The paper's, and those of SB3's own tuned settings: one step, one update.
        given.update(learning_rate=3e-4, batch_size=256, train_freq=1, gradient_steps=1)
    return given


def train(algorithm, environment, seed, steps):
    """Train; yield a row for each evaluation."""
    env = Monitor(gymnasium.make(environment))
    scored = Monitor(gymnasium.make(environment))
    kind = getattr(stable_baselines3, algorithm.upper())
    given = settings(algorithm, env.action_space)
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **given)
    cpu = wall = 0.0
    while model.num_timesteps < steps:
        before = time.process_time(), time.perf_counter()
        first = model.num_timesteps == 0
        model.learn(min(EVERY, steps - model.num_timesteps), reset_num_timesteps=first)
        cpu += time.process_time() - before[0]
        wall += time.perf_counter() - before[1]
        returns = [play(model, scored, seed + 1_000 + number) for number in range(EPISODES)]
        yield {
            "steps": model.num_timesteps,
            "evaluation": float(np.mean(returns)),
            "seconds": wall,
            "cpu_seconds": cpu,
        }


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
    parser.add_argument("algorithm", choices=("sac", "td3"))
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
        for row in train(options.algorithm, options.environment, options.seed, options.steps):
            print(json.dumps(row), file=file, flush=True)
    os.replace(partial, options.out)


if __name__ == "__main__":
    main()
