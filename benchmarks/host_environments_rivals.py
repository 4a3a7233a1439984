"""SB3's vectorised environments and EnvPool's, for `host_environments.py`.

    RIVALS/bin/pip install stable-baselines3 envpool 'gymnasium[mujoco,box2d]'

The interpreter of that environment runs this file: a line of JSON on standard input for each
request, {"system", "environment", "num_envs", "steps", "actions"}, and a line {"wall"} in answer.
`actions` are those of one step, which is repeated. Environments are kept.
"""

import json
import sys
import time

import numpy as np
from rival_versions import versions_of

PACKAGES = ("stable-baselines3", "envpool", "gymnasium", "mujoco", "box2d")


def make(system, environment, num_envs):
    """Return a function that steps a batch of environments, which have been reset."""
    if system == "EnvPool":
        import envpool

        pool = envpool.make(environment, "gymnasium", num_envs=num_envs)
        pool.reset()
        return pool.step
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    kind = SubprocVecEnv if system == "SB3, processes" else DummyVecEnv
    env = make_vec_env(environment, num_envs, seed=0, vec_env_cls=kind)
    env.reset()
    return env.step


def main():
    """Answer requests until the input ends."""
    print(json.dumps({"versions": versions_of(PACKAGES)}), flush=True)
    made = {}
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["system"], asked["environment"], asked["num_envs"]
        if name not in made:
            made[name] = make(*name)
        actions = np.asarray(asked["actions"], asked["dtype"])
        began = time.perf_counter()
        for _ in range(asked["steps"]):
            made[name](actions)
        print(json.dumps({"wall": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
