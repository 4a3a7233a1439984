"""Tuning gives every kind of replay the same trials, and reports seeds that it has not seen."""

import json
import sys
from pathlib import Path

import jax
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import amper_tuned as tuned
from amper_learning_train import SAMPLERS, Learned, Settings


def test_trials_repeat_and_lie_in_the_space():
    found = [each for shape in tuned.SHAPES for each in tuned.trials(shape, 9)]
    assert found == [each for shape in tuned.SHAPES for each in tuned.trials(shape, 9)]
    assert len(set(found)) == 36
    for each in found:
        assert tuned.RATES[0] <= each.learning_rate <= tuned.RATES[1]
        assert each.target_period in tuned.PERIODS
        assert each.alpha in tuned.ALPHAS
        assert each.beta in tuned.BETAS


def test_the_best_trial_is_reported_with_other_seeds(tmp_path, monkeypatch):
    """A training's score here is a function of its settings and key alone."""
    seen = {"tuning": [], "reported": []}

    def score(settings):
        return 500 - abs(float(settings.target_period) - 50) - 100 * float(settings.learning_rate)

    def train_seeds(task, size, sampler, keys, settings=None):
        settings = settings or Settings()
        data = {tuple(row) for row in np.asarray(jax.random.key_data(keys)).tolist()}
        leaves = np.broadcast_arrays(np.zeros(keys.shape), *settings[2:])[1:]
        seen["reported" if len(data) == len(keys) == 8 else "tuning"].append((sampler, data))
        final = np.array([
            score(Settings(*settings[:2], *each)) for each in zip(*leaves, strict=True)
        ])  # fmt: skip
        return Learned(np.array([1, 2]), np.outer(final, [0.5, 1]), final)

    monkeypatch.setattr(tuned, "train_seeds", train_seeds)
    tuned.main(["--quick", "--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    best = max(map(score, tuned.trials(tuned.SHAPES[-1], 2)))
    values = {(r["case"].rsplit(", ")[-1], r["system"], r["metric"]): r["value"]
              for r in report["records"]}  # fmt: skip
    for system in SAMPLERS:
        assert values["tuned", system, tuned.study.FINAL] == best
        assert values["untuned", system, tuned.study.FINAL] == score(Settings())
        assert values["tuned", system, "setting: batch_size"] == tuned.SHAPES[-1][0]
    tuning, reported = (set.union(*(data for _, data in seen[name])) for name in seen)
    assert not tuning & reported
    assert [claim["holds"] for claim in report["claims"]] == [best >= 475] * 4 + [True] * 2
