"""Stable-Baselines3's DQN and DDPG for `compose.py`, in an environment of their own.

`training_sb3.py` says how to make it. The interpreter of that environment runs this file: a line of
JSON on standard input for each request, {"algorithm", "environment", "settings", "num_envs",
"rollout", "updates", "iterations", "threads"}, and a line {"wall", "cpu"} in answer, of training
after a first 2,000 steps or more, in the second half of which it learns already. An iteration is
`rollout` steps of each environment, then so many updates.
"""

import json
import sys
import time

import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env

FIRST = 2_000


def answer(request):
    """Trains; seconds of the steps after the first."""
    kind = getattr(stable_baselines3, request["algorithm"].upper())
    settings = dict(request["settings"])
    settings["policy_kwargs"] = {"net_arch": settings.pop("hidden")}
    torch.set_num_threads(request["threads"])
    env = make_vec_env(request["environment"], request["num_envs"], seed=0)
    steps = request["num_envs"] * request["rollout"]
    model = kind(
        "MlpPolicy",
        env,
        train_freq=request["rollout"],
        gradient_steps=request["updates"],
        learning_starts=FIRST // 2,
        device="cpu",
        seed=0,
        **settings,
    )
    model.learn(max(FIRST, FIRST // 2 + 2 * steps))
    cpu, wall = time.process_time(), time.perf_counter()
    model.learn(request["iterations"] * steps, reset_num_timesteps=False)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main():
    """Answers requests until the input ends."""
    print(json.dumps({"version": stable_baselines3.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
