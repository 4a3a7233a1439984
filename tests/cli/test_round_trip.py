"""collect -> train -> evaluate -> plot, and what each leaves behind."""

import json
import shutil

import jax
import numpy as np
import pytest
from commands import SMALL, as_json, invoke, succeed

from accel_rl import datasets, envs, pim, tabular
from accel_rl.cli import table_folder
from accel_rl.experiment import tabular_run
from accel_rl.pim import cost
from pim_emu.machine import load_machine

RECORD_KEYS = [
    "environment",
    "rule",
    "order",
    "numerics",
    "merge",
    "by",
    "dpus",
    "passes",
    "period",
    "episode_return",
    "modelled_seconds",
]
PARTS = ["cpu_to_pim", "pim_kernel", "inter_pim", "pim_to_cpu"]


def test_collect_writes_what_the_library_collects(dataset):
    stored = datasets.load(dataset)
    mdp = envs.make_mdp("FrozenLake-v1")
    again = datasets.collect(mdp, "random", 4000, seed=3, environment="FrozenLake-v1")
    assert stored.info == again.info
    jax.tree.map(np.testing.assert_array_equal, stored.transitions, again.transitions)


def trained(dataset):
    chunks = pim.partition(datasets.load(dataset).transitions, 8, 16, 4)
    return pim.train(chunks, rule=tabular.q_learning(), schedule=pim.MergeSchedule(6))


def test_train_is_the_library_s_training(dataset, run):
    path, printed = run
    expected = trained(dataset)
    with np.load(path / "table.npz") as table:
        np.testing.assert_allclose(table["tables"], expected.tables, rtol=1e-5)
        np.testing.assert_allclose(table["values"], expected.values, rtol=1e-5)
    mdp = envs.make_mdp("FrozenLake-v1")
    exact = tabular.episode_return(mdp, tabular.greedy_policy(expected.values))
    assert printed["episode_return"] == pytest.approx(float(exact), rel=1e-6)
    history = json.loads((path / "history.json").read_text())
    assert history["passes"] == [1, 2, 3, 4, 5, 6]
    assert history["episode_return"][-1] == printed["episode_return"]


@pytest.mark.long  # wants XLA's optimisation: without it, another program is rounded otherwise
def test_train_is_the_library_s_training_to_the_bit(dataset, run):
    expected = trained(dataset)
    with np.load(run[0] / "table.npz") as table:
        np.testing.assert_array_equal(table["tables"], expected.tables)
        np.testing.assert_array_equal(table["values"], expected.values)


def test_train_models_the_run_that_it_made(run):
    _, printed = run
    assert list(printed["modelled_seconds"]) == PARTS
    workload = cost.DpuWorkload((500,) * 8, 16, 4, tasklets=4, passes=6)
    parts = cost.modelled_seconds(load_machine(), workload).parts()
    for name in ("cpu_to_pim", "inter_pim", "pim_to_cpu"):
        assert printed["modelled_seconds"][name] == pytest.approx(parts[name])
    # The rows' own imbalance takes the place of the expected one.
    assert parts["pim_kernel"] < printed["modelled_seconds"]["pim_kernel"]


def test_folder_explains_itself(dataset, run):
    path, printed = run
    assert {file.name for file in path.iterdir()} >= {"config.json", "results.json"}
    results = json.loads((path / "results.json").read_text())
    assert list(results)[: len(RECORD_KEYS)] == RECORD_KEYS
    assert printed == {"run": str(path), **results}
    config = json.loads((path / "config.json").read_text())
    assert config["settings"]["dpus"] == 8
    assert config["settings"]["seed"] == 0
    assert config["versions"]["jax"] == jax.__version__
    assert config["dataset"] == tabular_run.describe(datasets.load(dataset))
    other = datasets.collect(envs.make_mdp("FrozenLake-v1"), "random", 4000, seed=4)
    assert config["dataset"]["sha256"] != tabular_run.describe(other)["sha256"]


def test_evaluate_agrees_with_itself(run):
    path, printed = run
    figures = as_json("evaluate", path, "--episodes", 20000)
    assert figures["episode_return"] == pytest.approx(printed["episode_return"], rel=1e-6)
    # False alarms: 5 standard errors, 6e-7.
    difference = abs(figures["monte_carlo_return"] - figures["episode_return"])
    assert difference < 5 * figures["standard_error"]
    soft = as_json("evaluate", path / "table.npz", "--epsilon", 0.5, "--episodes", 100)
    assert soft["episode_return"] < figures["optimal_return"]
    assert soft["policy"] == "epsilon-greedy, epsilon 0.5"
    assert "simulated, 100 episodes" in succeed("evaluate", path, "--episodes", 100)


def test_plot_writes_pictures(run, tmp_path):
    path, _ = run
    files = as_json("plot", path, "--out", tmp_path / "pictures")["files"]
    assert sorted(file.rsplit("/", 1)[1] for file in files) == [
        "curve.png",
        "policy.png",
        "time.png",
    ]
    for file in files:
        with open(file, "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n"


def test_collect_follows_a_trained_table(run, tmp_path):
    path, _ = run
    out = tmp_path / "again.npz"
    figures = as_json(
        "collect", "FrozenLake-v1", "--num", 300, "--policy", path, "--epsilon", 0, "--out", out
    )
    assert figures["policy"] == "epsilon-greedy, epsilon 0"
    columns = datasets.load(out).transitions
    greedy = table_folder.load_table(path).values.argmax(axis=1)
    np.testing.assert_array_equal(columns.action, greedy[np.asarray(columns.state)])


@pytest.mark.long  # collects and trains again
def test_train_collects_by_itself_and_respects_the_preset(tmp_path):
    out = tmp_path / "run"
    text = succeed(
        "train", "FrozenLake-v1", "--num", 1000, "--preset", "swiftrl", "--passes", 4, "--period",
        2, "--dpus", 4, "--out", out,
    )  # fmt: skip
    assert "return, exact" in text
    assert "pim kernel, modelled" in text
    results = json.loads((out / "results.json").read_text())
    assert (results["passes"], results["period"], results["merge"]) == (4, 2, "mean")
    assert json.loads((out / "history.json").read_text())["passes"] == [2, 4]


def test_dataset_of_an_unknown_environment_trains_without_a_score(tmp_path):
    mdp = envs.make_mdp("FrozenLake-v1")
    path, out = tmp_path / "log.npz", tmp_path / "run"
    datasets.save(path, datasets.collect(mdp, "random", 4000, seed=3, environment="my lake"))
    text = succeed("train", path, *SMALL, "--out", out)
    assert "not known: no environment to score in" in text
    assert "exact" not in text
    figures = json.loads((out / "results.json").read_text())
    assert figures["environment"] == "my lake"
    assert figures["episode_return"] is None
    assert invoke("evaluate", out).exit_code == 2
    scored = as_json("evaluate", out, "--env", "FrozenLake-v1", "--episodes", 100)
    assert 0 <= scored["episode_return"] <= 1
    assert len(as_json("plot", out)["files"]) == 1  # the time parts


def test_existing_folder_is_replaced_only_on_demand(dataset, run, tmp_path):
    path = shutil.copytree(run[0], tmp_path / "run")  # others read the first one
    before = (path / "results.json").read_bytes()
    refused = invoke("train", dataset, *SMALL, "--out", path)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert (path / "results.json").read_bytes() == before
    again = as_json("train", dataset, *SMALL, "--out", path, "--overwrite")
    assert again["episode_return"] == run[1]["episode_return"]


def test_interrupted_training_leaves_nothing(dataset, tmp_path, monkeypatch):
    train = tabular_run.train

    def interrupted(chunks, settings, probe, on_passes, **more):
        def stop(passes):
            on_passes(passes)
            raise KeyboardInterrupt

        return train(chunks, settings, probe, stop, **more)

    monkeypatch.setattr(tabular_run, "train", interrupted)
    result = invoke("train", dataset, *SMALL, "--out", tmp_path / "run")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "accel-rl: interrupted\n"
    assert list(tmp_path.iterdir()) == []
