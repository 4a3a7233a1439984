"""The study of AMPER counts right, and its claims need what they compare with."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import amper_study as study
import amper_study_draws as draws
from common import Report

from accel_rl.report import results


@pytest.fixture(scope="module")
def known():
    return draws.priorities("exponential", 500)


def test_priorities_are_cut_in_two_ways(known):
    np.testing.assert_allclose(known.exact.sum(), 1)
    assert np.bincount(known.part).tolist() == [10] * draws.BINS
    assert (
        np.diff(known.values[np.argsort(known.part, kind="stable")].reshape(50, 10).max(1)) > 0
    ).all()
    inside = (known.edges[known.bin] <= known.values * (1 + 1e-6)) & (
        known.values <= known.edges[known.bin + 1] * (1 + 1e-6)
    )
    assert inside.all()


def test_divergence_is_that_of_the_formula():
    exact, counts = np.array([0.5, 0.5, 0.0]), np.array([3000, 1000, 0])
    expected = 0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25)
    np.testing.assert_allclose(draws.divergence(exact, counts), expected, rtol=1e-3)
    assert np.isfinite(draws.divergence(exact, np.array([10, 0, 0])))


def test_coverage_and_candidates():
    slots = np.array([[0, 1], [0, 2], [3, 3], [1, 1]])
    np.testing.assert_allclose(draws.coverage(slots, 4), [3 / 4, 2 / 4])
    # 2 of 4 pairs are the same, as if there were 2 items to draw from.
    assert draws.candidates(slots, 4) == 2 / 4
    assert draws.candidates(slots[:2], 4) == np.inf


def test_right_probabilities_give_right_weights(known):
    rng = np.random.default_rng(0)
    slots = rng.choice(500, size=(4000, 64), p=known.exact)
    found = draws.count(known, slots, known.exact[slots])
    assert found.divergence < 0.001
    assert np.median(found.weight_errors) < 0.02
    np.testing.assert_allclose(found.highest, 1, atol=0.05)
    assert found.unknown == 0
    np.testing.assert_allclose(found.estimate, found.frequency, rtol=0.3)
    wrong = draws.count(known, slots, np.ones(slots.shape))
    assert np.median(wrong.weight_errors) > 0.3
    some = np.where(slots == 7, 0.0, known.exact[slots])
    assert draws.count(known, np.argsort(known.values)[None, :-5], np.ones((1, 495))).highest == 0
    left = draws.count(known, slots, some)
    np.testing.assert_allclose(left.unknown, np.mean(slots == 7))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A study of 1,000 items in few calls, with its files."""
    patch = pytest.MonkeyPatch()
    for name, value in {
        "SIZES": (1_000,),
        "GROUPS": (20,),
        "RATIOS": (0.15,),
        "BASE_SIZE": 1_000,
        "QUICK_CALLS": 200,
    }.items():
        patch.setattr(study, name, value)
    folder = tmp_path_factory.mktemp("study")
    study.main(["--quick", "--json", str(folder / "report.json"), "--plot", str(folder)])
    yield folder, json.loads((folder / "report.json").read_text(encoding="utf-8"))
    patch.undo()


@pytest.mark.slow
def test_the_study_runs_and_records(small):
    folder, report = small
    results.parse("report.json", report)
    assert len(list(folder.glob("*.png"))) == 4
    found = {
        (r["case"], r["system"]): r["value"] for r in report["records"] if r["metric"] == study.KL
    }
    plain = "uniform priorities, 1,000 items"
    assert abs(found[plain, draws.UNIFORM] - (np.log(2) - 0.5)) < 0.03
    assert found[plain, draws.PER] < 0.01
    case = f"{plain}, m = 20, CSP ratio 0.15"
    assert all(found[case, system] < 0.1 for system in draws.AMPER)
    assert len(report["claims"]) == len(draws.AMPER)
    for claim in report["claims"]:
        system = claim["claim"].partition(",")[0]
        assert claim["value"] == found[case, system]
        assert claim["holds"] == (claim["value"] <= claim["bound"])


@pytest.mark.parametrize("missing", [draws.UNIFORM, draws.PER, draws.EXACT])
def test_claims_are_null_without_what_they_compare_with(missing):
    report = Report(())
    plain = draws.Setting("uniform", study.BASE_SIZE)
    for system in draws.SYSTEMS:
        if system != missing:
            case = (study.base() if system in draws.AMPER else plain).case
            report.add(case, system, study.KL, "nats", [0.004])
    study.claims(report)
    holds = {c.claim.partition(",")[0]: (c.value, c.holds) for c in report.claims}
    assert holds[draws.EXACT] == (None, None)
    others = (0.004, True) if missing == draws.EXACT else (None, None)
    assert holds[draws.PREFIX] == others
    if missing == draws.EXACT:
        assert holds[draws.DITHERED] == (0.004, False)
