"""The demo's files, on a part of the experiment; the whole of it, quickly, among the slow tests."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from commands import as_json
from test_round_trip import PARTS, RECORD_KEYS

from accel_rl import datasets, envs, pim, tabular
from accel_rl.experiment import swiftrl

PICTURES = {
    "learning_curves.png",
    "strong_scaling.png",
    "time_parts.png",
    "merge_period.png",
    "policy_frozenlake_v1.png",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder and the output of a demo of one environment, order and numerics."""
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swiftrl, "ENVIRONMENTS", ("FrozenLake-v1",))
        patch.setattr(swiftrl, "SWEEP_ENVIRONMENT", "FrozenLake-v1")
        patch.setattr(swiftrl, "ORDERS", ("SEQ",))
        patch.setattr(swiftrl, "NUMERICS", ("fp32",))
        patch.setattr(pim, "MERGES", ("visits", "mean"))
        printed = as_json("demo", "--quick", "--out", out)
    return out, printed


@pytest.mark.long  # runs the demo
def test_results_are_records_with_exactly_these_keys(demo):
    out, printed = demo
    records = json.loads((out / "results.json").read_text())
    assert records == printed["results"]
    for record in records:
        assert list(record) == RECORD_KEYS
        assert list(record["modelled_seconds"]) == PARTS
        assert all(seconds > 0 for seconds in record["modelled_seconds"].values())
    made = [(each["rule"], each["numerics"], each["by"], each["merge"]) for each in records]
    assert made == [
        ("q_learning", "fp32", "time", "visits"),
        ("q_learning", "int32_pow2", "time", "visits"),
        ("sarsa_epsilon_greedy", "fp32", "time", "visits"),
        ("q_learning", "fp32", "owner", "visits"),
        ("q_learning", "int32_pow2", "owner", "visits"),
        ("sarsa_epsilon_greedy", "fp32", "owner", "visits"),
        ("q_learning", "fp32", "time", "mean"),
    ]


@pytest.mark.long  # runs the demo
def test_records_hold_the_library_s_returns(demo):
    _, printed = demo
    scale, mdp = swiftrl.QUICK, envs.make_mdp("FrozenLake-v1")
    data = datasets.collect(mdp, "random", scale.transitions, seed=0)
    chunks = pim.partition(data.transitions, scale.dpus, 16, 4)
    schedule = pim.MergeSchedule(scale.passes)
    result = pim.train(chunks, rule=tabular.q_learning(), schedule=schedule)
    expected = tabular.episode_return(mdp, tabular.greedy_policy(result.values))
    assert printed["results"][0]["episode_return"] == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.long  # runs the demo
def test_pictures_and_details(demo):
    out, _ = demo
    assert {file.name for file in out.iterdir()} == PICTURES | {
        "results.json",
        "details.json",
        "config.json",
        "run.json",
    }
    for name in PICTURES:
        assert (out / name).stat().st_size > 10_000
    (details,) = json.loads((out / "details.json").read_text())["environments"]
    for curve in details["curves"]:
        assert curve["passes"] == [1, 2, 3, 4]
        assert len(curve["episode_return"]) == 4
    assert len(details["merge_period"]) == 2 * len(swiftrl.QUICK.sweep_periods)
    assert details["fitted_mdp"]["episode_return"] <= details["optimal_return"]
    for by, numerics in itertools.product(("time", "owner"), swiftrl.SCALING_NUMERICS):
        seconds = details["modelled_scaling_seconds"]["100000"][by][numerics]
        assert np.all(np.diff(seconds["cycles"]) < 0)
        assert np.all(np.array(seconds["total"]) > seconds["cycles"])
    config = json.loads((out / "config.json").read_text())
    assert config["settings"]["tasklets"] == 16
    assert config["datasets"][0]["rows"] == swiftrl.QUICK.transitions


def test_sarsa_error_is_zero_for_exact_values():
    """Fed the exact values of the policy that it estimates, either mode has no error."""
    mdp = envs.make_mdp("FrozenLake-v1")
    data = datasets.collect(mdp, "random", 4000, seed=3)
    laboratory = swiftrl.Laboratory("FrozenLake-v1", data)
    trained = laboratory.train(swiftrl.TabularSettings(rule="sarsa", dpus=8, passes=1))
    uniform = tabular.uniform_policy(16, 4)
    exact = np.array(tabular.policy_evaluation(mdp, uniform, 0.95)[1])
    assert _error(laboratory, trained, exact)["max_abs_error"] < 1e-6
    wrong = exact.copy()
    wrong[14, 2] += 0.25
    figures = _error(laboratory, trained, wrong)
    assert figures["max_abs_error"] == pytest.approx(0.25, abs=1e-6)
    share = np.mean(np.asarray(data.transitions.state * 4 + data.transitions.action) == 14 * 4 + 2)
    assert figures["mean_abs_error"] == pytest.approx(0.25 * share, abs=1e-6)
    assert figures["largest_abs_value"] == pytest.approx(exact.max(), rel=1e-5)


def _error(laboratory, trained, values):
    import dataclasses

    outcome = dataclasses.replace(trained.outcome, values=values)
    return swiftrl.sarsa_error(laboratory, dataclasses.replace(trained, outcome=outcome))


@pytest.mark.slow
def test_whole_demo_quickly(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "accel_rl", "demo", "--quick", "--out", tmp_path],
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    records = json.loads((tmp_path / "results.json").read_text())
    assert len(records) == 38
    assert {record["environment"] for record in records} == set(swiftrl.ENVIRONMENTS)
    assert "modelled" in done.stdout
    assert (tmp_path / "policy_taxi_v3.png").exists()
