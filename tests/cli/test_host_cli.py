"""Agents in Gymnasium's environments: train, evaluate, play and resume, and what is refused."""

import json
import shutil

import gymnasium
import numpy as np
import pytest
from commands import as_json, invoke, succeed

from accel_rl import envs, experiment
from accel_rl.experiment import configuration, hosted

SHORT = (
    *("--steps", "300", "schedule.learning_starts=40", "schedule.num_envs=2"),
    *("replay.capacity=300", "replay.batch_size=8", "agent.hidden=[8]"),
    "environment.reward_scale=0.1",  # of no figure that is reported
    *("evaluation.episodes=3", "evaluation.every=150", "evaluation.max_steps=30"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("host") / "cartpole"
    return path, as_json("train", "dqn", "CartPole-v1", "--host", *SHORT, "--out", path)


def test_train_evaluate_play(run):
    path, results = run
    assert results["steps"] == 300
    assert json.loads((path / "config.json").read_text())["environment"]["host"] is True
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    scored = [row["evaluation"] for row in rows if row["evaluation"] is not None]
    assert len(scored) == 2
    ended = [row for row in rows if row["episodes"]]
    assert [row["episode_return"] for row in ended] == [row["episode_length"] for row in ended]
    assert 0 < scored[-1] <= 30
    again = as_json("evaluate", path, "--episodes", 5)
    assert 0 < again["trainings"][0]["mean"] <= 30
    played = as_json("play", path, "--max-steps", 7)
    assert played["steps"] == played["episode_return"] <= 7


def test_resume_trains_longer(run, tmp_path):
    path = shutil.copytree(run[0], tmp_path / "run")
    assert as_json("resume", path, "--steps", "400")["steps"] == 400


def test_seeds_train_side_by_side(run, tmp_path):
    """The first of two is the training of one seed."""
    words = ("train", "dqn", "CartPole-v1", "--host", *SHORT, "--seeds", 2, "--out", tmp_path / "a")
    [both] = as_json(*words)["trainings"]
    [alone] = run[1]["trainings"]
    assert both["per_seed"][0] == pytest.approx(alone["per_seed"][0], rel=0.05)
    [again] = as_json("evaluate", tmp_path / "a", "--episodes", 5)["trainings"]
    assert len(again["per_seed"]) == 2
    assert as_json("play", tmp_path / "a", "--training", 1, "--max-steps", 7)["steps"] <= 7


def test_a_sweep(tmp_path):
    swept = "agent.learning_rate=1e-4,1e-2"
    words = ("sweep", "dqn", "CartPole-v1", swept, "environment.host=true", *SHORT)
    found = as_json(*words, "--out", tmp_path / "run")["combinations"]
    assert [each["settings"] for each in found] == [
        {"agent.learning_rate": 1e-4}, {"agent.learning_rate": 1e-2}
    ]  # fmt: skip


@pytest.mark.parametrize("executor", ["deterministic", "asynchronous"])
def test_executors(tmp_path, executor):
    words = (*SHORT, f"training.executor={executor}", "environment.backend=processes")
    out = tmp_path / "run"
    assert as_json("train", "dqn", "CartPole-v1", "--host", *words, "--out", out)["steps"] == 300


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("CartPole-v1", "--seeds", "2", "training.executor=asynchronous"), "must be 1, without a"),
        (("CartPole-v2", "--host"), "no Gymnasium environment is named 'CartPole-v2'"),
        (("brax:ant", "--host"), "environment.host must be false for brax:ant"),
        (("Nowhere-v1",), "no environment is named 'Nowhere-v1'"),
        (("CartPole-v1", "--host", "environment.backend=threads", "environment.workers=0"),
         "workers must be"),
    ],
)  # fmt: skip
def test_refusals(tmp_path, words, message):
    result = invoke("train", "dqn", *words, *SHORT, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["apex", "compose"])
def test_commands_that_take_compiled_environments_say_so(command):
    settings = {"environment.host": True}
    with pytest.raises(ValueError, match=f"{command} takes environments that are compiled, and Ca"):
        experiment.load(None, settings, agent="dqn", environment="CartPole-v1", command=command)


def config(name, **settings):
    return configuration.EnvironmentConfig(name, **settings)


def test_names_of_gymnasium_alone_are_found():
    for name in ("LunarLander-v3", "HalfCheetah-v5", "ALE/Pong-v5"):
        assert hosted.is_hosted(config(name))
    for name in ("CartPole-v1", "FrozenLake-v1", "brax:ant", "Nowhere-v1"):
        assert not hosted.is_hosted(config(name))
    assert hosted.is_hosted(config("CartPole-v1", host=True))


def test_an_environment_of_one_s_own(tmp_path, monkeypatch):
    """Registered by its module, as `gymnasium.make` takes it."""
    (tmp_path / "own_gym.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        'gymnasium.register("Own-v0", CartPoleEnv, max_episode_steps=9)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert hosted.is_hosted(config("own_gym:Own-v0"))
    words = ("train", "dqn", "own_gym:Own-v0", *SHORT, "--out", tmp_path / "run")
    [found] = as_json(*words)["trainings"]
    assert 0 < found["mean"] <= 9
    with pytest.raises(ValueError, match="'own_gym:Other-v0'"):
        envs.host_environment("own_gym:Other-v0")


@pytest.mark.filterwarnings("ignore:.*precision lowered")
def test_wrappers_are_applied():
    """In the order of a configuration's compiled ones."""
    settings = {"time_limit": 4, "dtype": "float16", "host": True}
    source = hosted.host_source(config("CartPole-v1", **settings))
    assert source.environment.observation_space.dtype == np.float16
    with source.open(2) as env, source.open_scored(1) as scored:
        for each in (env, scored):
            each.reset(0)
            steps = [each.step(np.zeros(each.num_envs, int)) for _ in range(4)]
            assert steps[-1].truncated.all()
            assert steps[0].observation.dtype == np.float16
    assert envs.is_host("CartPole-v1")
    assert not gymnasium.registry.get("CartPole-v1").entry_point.startswith("accel_rl")


def test_help_names_the_option():
    assert "--host" in succeed("train", "dqn", "--help")
