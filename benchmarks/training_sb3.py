"""Stable-Baselines3's DQN and SBX's, for `training.py`, in an environment of their own.

    python3.11 -m venv RIVALS
    RIVALS/bin/pip install torch stable-baselines3==2.9.2 sbx-rl==0.28.0 gymnasium
    python benchmarks/training.py --rivals RIVALS/bin/python

The interpreter of that environment runs this file. It answers requests, a line of JSON each, on
standard input: {"system", "setting", "steps", "seed", "evaluate"}; a first line says which systems
there are. Models are kept, so that nothing is compiled twice. torch gets one thread: networks of
this size are slower with more.
"""

import importlib
import json
import sys
import time

from rival_versions import versions_of

SYSTEMS = {"SB3": "stable_baselines3", "SBX": "sbx"}
PACKAGES = ("torch", "stable-baselines3", "sbx-rl", "gymnasium", "jax")
EPISODES = 20


def make_model(system, setting, seed):
    """Return a DQN agent on the setting's environments."""
    from stable_baselines3.common.env_util import make_vec_env

    extra = {"device": "cpu"} if system == "SB3" else {}
    return importlib.import_module(SYSTEMS[system]).DQN(
        "MlpPolicy",
        make_vec_env(setting["environment"], setting["num_envs"], seed=seed),
        learning_rate=setting["learning_rate"],
        buffer_size=setting["capacity"],
        learning_starts=setting["learning_starts"],
        batch_size=setting["batch_size"],
        tau=1.0,
        gamma=setting["gamma"],
        train_freq=1,
        gradient_steps=1,
        target_update_interval=setting["target_steps"],
        exploration_fraction=0.5,
        exploration_initial_eps=setting["epsilon_start"],
        exploration_final_eps=setting["epsilon_end"],
        policy_kwargs={"net_arch": list(setting["hidden"])},
        seed=seed,
        **extra,
    )


def run(models, request):
    """Train for the request's steps; seconds, and the greedy return if it is asked for."""
    from stable_baselines3.common.evaluation import evaluate_policy

    system, setting, seed = request["system"], request["setting"], request["seed"]
    name = system, setting["name"], seed
    if request["evaluate"] or name not in models:
        models[name] = make_model(system, setting, seed)
        models[name].set_logger(_quiet())
    model = models[name]
    cpu, wall = time.process_time(), time.perf_counter()
    model.learn(request["steps"])
    answer = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    if request["evaluate"]:
        del models[name]
        returns, _ = evaluate_policy(
            model, model.get_env(), n_eval_episodes=EPISODES, return_episode_rewards=True
        )
        answer["returns"] = returns
    return answer


def _quiet():
    from stable_baselines3.common.logger import Logger

    return Logger(folder=None, output_formats=[])


def main():
    """Answers requests until the input ends."""
    present = []
    for system, module in SYSTEMS.items():
        try:
            importlib.import_module(module)
            present.append(system)
        except ImportError as error:
            print(f"{system}: {error}", file=sys.stderr)
    if "SB3" in present:
        import torch

        torch.set_num_threads(1)
    print(json.dumps({"systems": present, "versions": versions_of(PACKAGES)}), flush=True)
    models = {}
    for line in sys.stdin:
        print(json.dumps(run(models, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
