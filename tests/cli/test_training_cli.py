"""train AGENT -> evaluate and resume, and what each leaves behind."""

import csv
import dataclasses
import importlib.util
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from commands import SMALL, TINY, as_json, invoke, succeed
from trainings import rows_of, scores, signal_at

from accel_rl import io, train
from accel_rl.experiment import configuration, folder, layers, scoring
from accel_rl.experiment import training as training_runs
from accel_rl.experiment.assembly import assemble
from accel_rl.io import run_folder
from accel_rl.plot import interquartile_mean

DQN = ("train", "dqn", "CartPole-v1", *TINY, "--replay", "amper-fr")


@pytest.fixture(scope="module")
def assembly(training):
    return assemble(folder.read(training[0]))


def test_train_is_the_library_s_training(training, assembly):
    path, printed = training
    outcome = train.run(
        assembly.program,
        assembly.key,
        400,
        period=80,
        hyper=assembly.hyper,
        seeds={"strategy": "auto"},
        evaluation=train.Evaluation(episodes=4, every=160, max_steps=50),
    )
    rows = rows_of(path)
    assert [row["steps"] for row in rows] == [row["steps"] for row in outcome.rows]
    for name in ("episode_return", "loss", "value", "evaluation"):
        ours = np.array([row["per_seed"][name] for row in rows], np.float64)
        np.testing.assert_array_equal(ours, [row["per_seed"][name] for row in outcome.rows])
    assert printed["steps"] == 400
    assert printed["trainings"][0]["per_seed"] == rows[-1]["per_seed"]["evaluation"]


def test_folder_explains_itself(training, assembly):
    path, printed = training
    assert {file.name for file in path.iterdir()} == {
        "README.txt", "checkpoints", "config.json", "metrics.csv", "metrics.jsonl", "results.json",
        "run.json",
    }  # fmt: skip
    results = json.loads((path / "results.json").read_text())
    assert printed == {"run": str(path), **results}
    assert results["reason"] == "done"
    assert results["command"].startswith("accel-rl train dqn CartPole-v1 --steps 400")
    assert results["versions"]["jax"] == jax.__version__
    (figures,) = results["trainings"]
    assert figures["mean"] == pytest.approx(np.mean(figures["per_seed"]))
    assert figures["interquartile_mean"] == pytest.approx(interquartile_mean(figures["per_seed"]))
    assert (figures["lowest"], figures["highest"]) == tuple(sorted(figures["per_seed"]))
    readme = (path / "README.txt").read_text()
    commands = [f"accel-rl {name} {path}" for name in ("evaluate", "plot", "report", "resume")]
    for word in (results["command"], *commands):
        assert word in readme
    config = json.loads((path / "config.json").read_text())
    manifest = json.loads((path / "run.json").read_text())
    assert (manifest["kind"], manifest["schema_version"]) == ("training", 1)
    assert manifest["command"] == results["command"]
    assert manifest["seeds"] == list(range(config["training"]["seeds"]))
    assert {name.rstrip("/") for name in manifest["files"]} >= {
        file.name for file in path.iterdir() if file.name != "run.json"
    }
    assert config == configuration.to_mapping(assembly.configuration)
    assert config["agent"]["hidden"] == [8]
    with (path / "metrics.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [int(row["steps"]) for row in table] == [row["steps"] for row in rows_of(path)]


def test_existing_folder_is_replaced_only_on_demand(training):
    path, _ = training
    before = (path / "results.json").read_bytes()
    refused = invoke("train", "dqn", "CartPole-v1", *TINY, "--out", path)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert (path / "results.json").read_bytes() == before


@pytest.mark.long  # trains again
def test_saved_configuration_repeats_the_run_exactly(training, tmp_path):
    path, printed = training
    again, words = tmp_path / "again", ("--config", path / "config.json")
    (again / "checkpoints").mkdir(parents=True)
    (again / "mine.txt").touch()
    assert "--overwrite" in invoke("train", "dqn", *words, "--out", again).stderr
    results = as_json("train", "dqn", *words, "--out", again, "--overwrite")
    assert scores(results) == scores(printed)
    assert rows_of(again) == rows_of(path)
    assert (again / "mine.txt").exists()
    shown = as_json("train", "dqn", *words, "training.seed=5", "--show")
    assert shown["training"]["seed"] == 5
    assert shown["agent"] == json.loads((path / "config.json").read_text())["agent"]


def test_stopped_training_resumes_to_the_same_bits(training, tmp_path, monkeypatch):
    path, printed = training
    out = tmp_path / "run"
    signal_at(monkeypatch, 200)
    stopped = invoke("train", "dqn", "--config", path / "config.json", "--out", out)
    monkeypatch.undo()
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert f"accel-rl resume {out}" in stopped.stderr
    assert not (out / "results.json").exists()
    assert [row["steps"] for row in rows_of(out)] == [40, 120, 200]
    assert invoke("train", "dqn", "--config", path / "config.json", "--out", out).exit_code == 2
    resumed = as_json("resume", out)
    assert scores(resumed) == scores(printed)
    assert rows_of(out) == rows_of(path)
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["command"].startswith("accel-rl train dqn")
    (resumed,) = manifest["resumed"]
    assert resumed["command"] == f"accel-rl resume {out} --json"


def test_a_training_that_has_ended_has_nothing_left(training, tmp_path):
    path, printed = training
    out = shutil.copytree(path, tmp_path / "run")
    result = invoke("resume", out, "--json")
    assert scores(json.loads(result.stdout)) == scores(printed)
    (line,) = result.stderr.splitlines()
    assert line == "accel-rl: nothing is left to do, 400 steps are done; --steps N trains longer"


@pytest.mark.long  # trains three times
def test_resumed_with_more_steps_it_is_the_longer_training(training, tmp_path):
    path, printed = training
    out = tmp_path / "run"
    words = ("--config", path / "config.json", "--steps", 250, "--out", out)
    assert as_json("train", "dqn", *words)["steps"] == 252  # whole iterations
    longer = as_json("resume", out, "--steps", 400)
    assert scores(longer) == scores(printed)
    assert json.loads((out / "config.json").read_text())["training"]["steps"] == 400
    refused = invoke("resume", out, "--steps", 120)
    assert refused.exit_code == 2
    assert "--steps must be at least 400, which are done, got 120" in refused.stderr


def test_evaluate_plays_the_policy(training, assembly):
    path, _ = training
    figures = as_json("evaluate", path, "--episodes", 3, "--seed", 7)
    state = train.restore(assembly.program, io.Checkpoints(path / "checkpoints").newest())
    play = train.evaluator(assembly.env, assembly.program.agent, 3, 50)
    keys = jax.random.split(jax.random.key(np.uint32(7)), 2)
    policies = jax.vmap(assembly.program.agent.policy)(state.agent)
    expected = jax.jit(jax.vmap(play))(policies, keys).mean(axis=1)
    np.testing.assert_allclose(scores(figures)[0], expected, rtol=1e-6)
    assert (figures["steps"], figures["episodes"]) == (400, 3)
    best = as_json("evaluate", path, "--checkpoint", "best", "--episodes", 3)
    evaluations = {row["steps"]: row["evaluation"] for row in rows_of(path)}
    known = {step: value for step, value in evaluations.items() if value is not None}
    assert best["steps"] == max(known, key=lambda step: (known[step], -step))
    assert "means of 4 greedy episodes" in succeed("evaluate", path)  # as configured


@pytest.mark.long  # trains twice
def test_rewards_are_reported_as_they_are(tmp_path):
    """CartPole's returns are its episodes' lengths, however rewards are scaled for learning."""
    out = tmp_path / "scaled"
    succeed(*DQN, "environment.reward_scale=0.5", "evaluation.stop_at=1", "--out", out)
    rows = rows_of(out)
    for row in rows:
        assert row["episode_return"] == pytest.approx(row["episode_length"])
    results = json.loads((out / "results.json").read_text())
    lowest = results["trainings"][0]["lowest"]
    assert results["reason"] == f"stopped: evaluation is {lowest:g}, 1 or more"
    assert results["steps"] == 200  # the first that is evaluated
    played = as_json("evaluate", out, "--episodes", 4)["trainings"][0]["mean"]
    assert played == pytest.approx(results["trainings"][0]["mean"], rel=0.5)


@pytest.mark.long  # trains every tabular agent
def test_tables_learn_on_line(tmp_path):
    """SARSA on a lake without ice, of one state of four: the goal is found."""
    words = ("environment.arguments.is_slippery=false", "schedule.num_envs=1", "--seeds", 2)
    out = tmp_path / "lake"
    for agent in ("q-learning", "expected_sarsa"):
        text = succeed(
            "train", agent, "FrozenLake-v1", *words, "--steps", 20_000, "--out", out, "--overwrite",
            "agent.alpha=0.5",
        )  # fmt: skip
        assert "1.00" in text
    config = json.loads((out / "config.json").read_text())
    assert config["replay"]["sampler"] == "newest"
    assert config["replay"]["capacity"] == 1


@pytest.mark.long  # trains three times
def test_first_word_that_is_no_agent_is_a_log(dataset, tmp_path):
    out = tmp_path / "lake"
    plain = as_json("train", dataset, *SMALL, "--out", out)
    explicit = as_json("train", "log", dataset, *SMALL, "--out", out, "--overwrite")
    before = as_json("train", *SMALL, "--overwrite", "--out", out, dataset)
    times = ("measured_seconds",)
    for other in (explicit, before):
        assert {k: v for k, v in other.items() if k not in times} == {
            k: v for k, v in plain.items() if k not in times
        }
    for words, code in ((("--epsilon", 0.1), 0), (("--horizon", 5), 0), (("--env", "Taxi-v3"), 2)):
        assert invoke("evaluate", out, *words, "--episodes", 10).exit_code == code
    assert "--checkpoint" in invoke("evaluate", out, "--checkpoint", "best").stderr


@pytest.mark.long  # trains
def test_diverged_training_is_exit_code_1(tmp_path):
    out = tmp_path / "run"
    result = invoke(*DQN, "agent.learning_rate=1", "environment.reward_scale=1e30", "--out", out)
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: diverged: ")
    results = json.loads((out / "results.json").read_text())
    assert results["reason"].startswith("diverged")
    assert results["trainings"][0]["mean"] is None


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("train",), ("AGENT ENV",)),
        (("train", "dqn"), ("no environment is named",)),
        (
            ("train", "ppo", "CartPole-v1"),
            ("AGENT: no agent is named 'ppo'; there are dqn, rainbow, ddpg, td3, sac, q-learning",),
        ),
        (
            ("train", "dqqn", "CartPole-v1", "--seeds", "2"),
            ("no agent is named 'dqqn'; did you mean dqn? there are dqn, rainbow, ddpg",),
        ),
        (("train", "dqn", "CartPole"), ("did you mean CartPole-v1",)),
        (("train", "dqn", "Pendulum-v1"), ("Discrete action space",)),
        (("train", "dqn", "CartPole-v1", "agent.lr=1"), ("no setting of dqn", "'agent.lr'")),
        (("train", "dqn", "CartPole-v1", "--steps", "x"), ("training.steps", '"x"')),
        (("train", "dqn", "CartPole-v1", "--steps", "9"), ("steps must be more than", "9")),
        (("train", "dqn", "CartPole-v1", "--log", "papyrus"), ("training.log", "papyrus")),
        (("train", "dqn", "CartPole-v1", "--replay", "xyz"), ("sampler", "amper_fr")),
        (("train", "dqn", "CartPole-v1", "evaluation.every=0"), ("every must be at least 1",)),
        (("train", "dqn", "CartPole-v1", "checkpoints.keep=0"), ("keep must be at least 1",)),
        (
            ("train", "dqn", "CartPole-v1", "evaluation.stop_at=inf"),
            ("stop_at must be a finite number",),
        ),
        (("train", "dqn", "CartPole-v1", "training.strategy=batched"), ("needs seed_batch",)),
        (("train", "dqn", "--config", "absent.toml"), ("absent.toml",)),
        (("sweep", "dqn", "CartPole-v1", "agent.gamma=0.9"), ("several values",)),
        (("sweep", "dqm", "CartPole-v1", "agent.gamma=0.9,1"), ("AGENT", "dqm")),
        (("sweep", "dqn", "CartPole-v1", "agent.gamma=0.9,2"), ("gamma must be from 0 to 1",)),
        (("resume", "absent"), ("RUN_DIR", "absent")),
    ],
)
def test_bad_input_is_one_line(words, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    for part in ("accel-rl: ", *parts):
        assert part in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long  # assembles other trainings
def test_a_folder_of_another_training_is_refused(training, tmp_path):
    """Its configuration was changed since: a checkpoint cannot go on from it."""
    (tmp_path / "empty").mkdir()
    refused = invoke("resume", tmp_path / "empty")
    assert refused.exit_code == 2
    assert "is not the folder of a run: no run.json" in refused.stderr
    out = shutil.copytree(training[0], tmp_path / "copy")
    tables = json.loads((out / "config.json").read_text())
    tables["agent"]["hidden"] = [3]
    (out / "config.json").write_text(json.dumps(tables))
    before = rows_of(out)
    for command in ("resume", "evaluate"):
        refused = invoke(command, out)
        assert refused.exit_code == 2
        assert "is of another program" in refused.stderr
    assert rows_of(out) == before
    (out / "checkpoints").rename(tmp_path / "checkpoints")
    assert "has no checkpoint yet" in invoke("evaluate", out).stderr


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("run.json", "5", "run.json is damaged: must be an object, got 5"),
        ("sweep.json", "{}", "sweep.json is damaged: groups is missing"),
        ("sweep.json", "[]", "sweep.json is damaged: must be an object, got []"),
        ("sweep.json", '{"groups": [{"folder": "1"}]}', "groups.0.settings is missing"),
        ("config.json", "5", "config.json must be an object, got 5"),
    ],
)
def test_a_damaged_folder_is_refused(name, text, part, tmp_path):
    kind = "sweep" if name == "sweep.json" else "training"
    run_folder.begin_run(tmp_path, kind, "accel-rl train dqn", [0], {})
    (tmp_path / name).write_text(text)
    for command in ("evaluate", "plot", "resume"):
        refused = invoke(command, tmp_path)
        assert refused.exit_code == 2
        assert part in refused.stderr


def test_options_of_tables_are_not_for_agents(training):
    for words in (("--env", "Taxi-v3"), ("--epsilon", 0.1), ("--horizon", 3)):
        refused = invoke("evaluate", training[0], *words)
        assert refused.exit_code == 2
        assert words[0] in refused.stderr


def test_help_lists_what_an_agent_accepts():
    text = succeed("train", "ddpg", "--help")
    for word in ("agent.noise_scale", "standard deviation of the noise", "agent.hidden", "[64,64]"):
        assert word in text
    text = succeed("train", "--help")
    for word in ("dqn", "double-q-learning", "DATASET.npz", "log"):
        assert word in text


def test_rows_of_a_run_that_crashed_are_read(training, tmp_path):
    text = (training[0] / "metrics.jsonl").read_text()
    (tmp_path / "metrics.jsonl").write_text(text[:-20])
    assert len(folder.read_rows(tmp_path)) == len(text.splitlines()) - 1


def test_seeds_without_a_score_keep_the_last():
    complete = configuration.from_mapping(
        {
            **layers.tables({"environment.name": "x", "agent.name": "y", "training.seeds": 2}),
            "sweep": {"agent.a": [1, 2]},
        }
    )
    row = {"per_seed": {"evaluation": [1.0, None, 3.0, 4.0]}}
    found = training_runs.per_combination(complete, row, "evaluation")
    np.testing.assert_array_equal(found, [[1, np.nan], [3, 4]])
    assert training_runs.figures(found[0])["mean"] is None
    assert training_runs.figures(found[0])["per_seed"] == [1, None]


def test_a_policy_that_is_not_finite_has_no_score(training, monkeypatch):
    sound = train.restore

    def restore(*words):
        state = sound(*words)

        def lost(leaf):
            return leaf.at[0].set(jnp.nan) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf

        return dataclasses.replace(state, agent=jax.tree.map(lost, state.agent))

    whole = scoring.score(training[0])["trainings"][0]["per_seed"]
    monkeypatch.setattr(train, "restore", restore)
    (figures,) = scoring.score(training[0])["trainings"]
    assert figures["per_seed"] == [None, whole[1]]
    assert figures["mean"] is None


@pytest.mark.long  # trains on
@pytest.mark.filterwarnings("default")
def test_a_damaged_checkpoint_is_told_of_and_the_one_before_is_used(training, tmp_path):
    copy = shutil.copytree(training[0], tmp_path / "copy")
    newest, before = sorted(io.Checkpoints(copy / "checkpoints").steps())[:-3:-1]
    (copy / "checkpoints" / f"{newest:012d}" / "rows.json").write_text("[]")
    result = invoke("evaluate", copy, "--json")
    assert json.loads(result.stdout)["steps"] == before
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: warning: damaged: ")
    assert "rows.json was changed after it was written" in line
    assert scores(as_json("resume", copy)) == scores(training[1])


@pytest.mark.long  # trains again
def test_tensorboard_is_written_or_told_to_be_absent(training, tmp_path):
    words = ("train", "dqn", "--config", training[0] / "config.json", "--log", "tensorboard")
    if importlib.util.find_spec("tensorboardX") is None:
        refused = invoke(*words, "--out", tmp_path / "run")
        assert refused.exit_code == 2
        assert "pip install 'accel-rl[tensorboard]'" in refused.stderr
        assert list(tmp_path.iterdir()) == []
    else:
        succeed(*words, "--out", tmp_path / "run")
        (events,) = (tmp_path / "run" / "tensorboard").iterdir()
        assert events.name.startswith("events.out.tfevents.")
        assert "without jsonl" in invoke("plot", tmp_path / "run").stderr
