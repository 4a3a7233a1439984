"""The study of AMPER's learning: what it records is what was trained, and claims need a rival."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import amper_learning as study
import amper_learning_train as training
from common import Report
from learning_curves import curve

from accel_rl import plot

SIZE, SEEDS = 1_000, 4
TASK = training.Task("CartPole-v1", 1_400, 50, -25.0, seeds=SEEDS)


@pytest.fixture(autouse=True)
def promotion_as_users_have_it():
    with jax.numpy_dtype_promotion("standard"):
        yield


def learned(final):
    curves = np.outer(final, [0.5, 0.75])
    return training.Learned(np.array([10, 20]), curves, np.asarray(final, np.float64))


def test_curves_are_means_over_episodes():
    nan = np.nan
    metrics = {
        "steps": np.tile(np.arange(1, 7) * 10, (2, 1)),
        "episodes": np.array([[0, 0, 1, 3, 0, 0], [2, 0, 0, 0, 0, 1]]),
        "episode_return": np.array([[nan, nan, 4, 8, nan, nan], [5, nan, nan, nan, nan, 9]]),
    }
    steps, means = curve(metrics, points=3)
    assert steps.tolist() == [20, 40, 60]
    # (4 + 3 * 8) / 4 = 7, before and after it there was none; 5 holds until 9.
    np.testing.assert_allclose(means, [[7, 7, 7], [5, 5, 9]])
    del metrics["episodes"]
    np.testing.assert_allclose(curve(metrics, 3)[1][0], [6, 6, 6])
    assert curve(metrics, 100)[1].shape == (2, 6)


def test_a_training_without_an_episode_has_no_curve():
    metrics = {"steps": np.ones((1, 2)), "episode_return": np.full((1, 2), np.nan)}
    with pytest.raises(ValueError, match="no episode"):
        curve(metrics)


@pytest.mark.parametrize(("shift", "holds"), [(-20.0, True), (-40.0, False)])
def test_a_claim_is_the_lower_end_of_the_difference(shift, holds):
    final = np.full(SEEDS, 200.0)
    results = {
        (TASK.environment, SIZE, name): learned(final + (shift if name == study.AMPER_K else 0))
        for name in study.SAMPLERS
    }
    report, case = Report(()), study.case_name(TASK, SIZE)
    study.compare(report, case, study.AMPER_K, results, TASK, SIZE)
    study.claims(report, [TASK], [SIZE])
    ours, other = report.claims
    assert (ours.value, ours.holds) == (pytest.approx(shift), holds)
    assert (other.value, other.holds) == (None, None)


@pytest.mark.slow  # bootstraps 200 times
def test_intervals_hold_the_difference_as_often_as_they_say():
    # Two normal groups of 30 with means 5 apart, 200 times: of 90 % intervals all but 20 hold it;
    # fewer than 160 would do so once in 10^5 times, were each to hold it with 0.88.
    draw, held = np.random.default_rng(0), 0
    case = study.case_name(TASK, SIZE)
    for _ in range(200):
        results = {
            (TASK.environment, SIZE, study.PER): learned(draw.normal(0, 10, 30)),
            (TASK.environment, SIZE, study.AMPER_FR): learned(draw.normal(5, 10, 30)),
        }
        report = Report(())
        study.compare(report, case, study.AMPER_FR, results, TASK, SIZE)
        low, high = report.records[0].spread
        held += low <= 5 <= high
    assert 160 <= held < 200


@pytest.mark.slow
def test_the_study_trains_and_records(tmp_path, monkeypatch):
    names = (study.PER, study.AMPER_K, study.AMPER_FR, study.UNIFORM)
    monkeypatch.setattr(study, "TASKS", (TASK,))
    monkeypatch.setattr(study, "QUICK_SIZES", (SIZE,))
    monkeypatch.setattr(study, "QUICK_SEEDS", SEEDS)
    study.main(["--quick", "--json", str(tmp_path / "r.json"), "--plot", str(tmp_path)])
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (tmp_path / "amper_learning_cartpole.png").stat().st_size > 10_000
    values = {(r["system"], r["metric"]): r["value"] for r in report["records"]}
    assert all(8 < values[name, study.FINAL] <= 50 for name in names)  # cut at 50 steps
    difference = values[study.AMPER_K, study.FINAL] - values[study.PER, study.FINAL]
    found = values[f"{study.AMPER_K} - {study.PER}", study.DIFFERENCE + study.FINAL]
    np.testing.assert_allclose(found, difference, atol=1e-9)
    assert [claim["value"] is None for claim in report["claims"]] == [False, False]


@pytest.mark.slow
@pytest.mark.parametrize("on_host", [False, True])
def test_seeds_differ_and_repeat(on_host):
    keys, task = jax.random.split(jax.random.key(0), SEEDS), TASK._replace(on_host=on_host)
    first = training.train_seeds(task, SIZE, "uniform", keys)
    again = training.train_seeds(task, SIZE, "uniform", keys)
    np.testing.assert_array_equal(first.curves, again.curves)
    assert len({tuple(row) for row in first.curves.tolist()}) == SEEDS
    np.testing.assert_allclose(first.area, first.curves.mean(1))
    middle = plot.interquartile_mean(first.final)
    assert first.final.min() <= middle <= first.final.max()
