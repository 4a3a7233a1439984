"""Stable-Baselines3's SAC and TD3, for `host_training.py`.

    RIVALS/bin/pip install stable-baselines3 'gymnasium[mujoco]'

The interpreter of that environment runs this file: a line of JSON on standard input for each
request, {"algorithm", "environment", "threads", "random_steps", "steps"}, and a line {"wall"} in
answer. Models are kept, one for each number of threads, and train on in each request.
"""

import json
import sys
import time

import gymnasium
import torch
from rival_versions import versions_of
from scoreboard_sb3 import make_model, settings
from stable_baselines3.common.logger import Logger

PACKAGES = ("torch", "stable-baselines3", "gymnasium", "mujoco")


def make(asked):
    """Return a model that is past its random steps."""
    algorithm, environment = asked["algorithm"], asked["environment"]
    given, _ = settings(algorithm, environment, asked["steps"])
    given["learning_starts"] = asked["random_steps"]
    model = make_model(algorithm, gymnasium.make(environment), 0, **given)
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model.learn(asked["random_steps"] + asked["steps"])


def main():
    """Answer requests until the input ends."""
    print(json.dumps({"versions": versions_of(PACKAGES)}), flush=True)
    made = {}
    for line in sys.stdin:
        asked = json.loads(line)
        torch.set_num_threads(asked["threads"])
        name = asked["algorithm"], asked["environment"], asked["threads"]
        if name not in made:
            made[name] = make(asked)
        began = time.perf_counter()
        made[name].learn(asked["steps"], reset_num_timesteps=False)
        print(json.dumps({"wall": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
