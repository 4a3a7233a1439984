"""Aggregate metrics, against SciPy, closed forms and rliable."""

import numpy as np
import pytest
from scipy import stats

from accel_rl import plot
from accel_rl.plot import aggregates, bootstrap

SCORES = np.random.default_rng(0).gamma(2.0, 0.5, (9, 5))
OTHERS = np.round(np.random.default_rng(1).gamma(2.0, 0.4, (7, 5)), 1)
TIES = np.round(SCORES, 1)
THRESHOLDS = np.linspace(0, 3, 31)


def test_closed_forms():
    scores = [[0.0, 2.0], [1.0, 4.0], [2.0, 0.0]]
    assert aggregates.mean(scores) == 1.5
    assert aggregates.median(scores) == 1.5  # of the means 1 and 2
    assert aggregates.optimality_gap(scores) == pytest.approx(1 - 4 / 6)
    assert aggregates.optimality_gap(scores, 2) == pytest.approx(2 - 7 / 6)
    assert aggregates.probability_of_improvement([[1.0]], [[0.0], [1.0]]) == 0.75
    np.testing.assert_allclose(aggregates.performance_profile(scores, [0, 1.5, 4]), [4 / 6, 0.5, 0])


def test_scipy_s():
    ours = aggregates.pooled_interquartile_mean(SCORES)
    assert ours == pytest.approx(stats.trim_mean(SCORES, 0.25, axis=None))
    wins = [stats.mannwhitneyu(TIES[:, m], OTHERS[:, m]).statistic / 63 for m in range(5)]
    assert aggregates.probability_of_improvement(TIES, OTHERS) == pytest.approx(np.mean(wins))


def test_rliable_s():
    metrics = pytest.importorskip("rliable.metrics", reason="rliable: absent: the extra dev")
    for ours, theirs in (
        (aggregates.mean, metrics.aggregate_mean),
        (aggregates.median, metrics.aggregate_median),
        (aggregates.pooled_interquartile_mean, metrics.aggregate_iqm),
        (aggregates.optimality_gap, metrics.aggregate_optimality_gap),
    ):
        assert ours(SCORES) == pytest.approx(theirs(SCORES), rel=1e-12)
    found = aggregates.probability_of_improvement(TIES, OTHERS)
    assert found == pytest.approx(metrics.probability_of_improvement(TIES, OTHERS), rel=1e-12)


def test_rliable_s_profiles_and_intervals():
    """Its dependency arch needs a pandas below 3."""
    library = pytest.importorskip("rliable.library", reason="arch", exc_type=Exception)
    from rliable import metrics

    want = library.score_distributions(SCORES, THRESHOLDS)
    np.testing.assert_allclose(aggregates.performance_profile(SCORES, THRESHOLDS), want)
    # Intervals resample runs within tasks, and agree up to the noise of 20,000 resamples.
    intervals = library.get_interval_estimates(
        {"a": SCORES}, lambda x: np.array([metrics.aggregate_median(x)]), reps=20_000
    )[1]["a"][:, 0]
    tasks = [SCORES[:, m] for m in range(5)]
    ours = bootstrap(tasks, lambda *drawn: aggregates.median(np.stack(drawn, -1)), resamples=20_000)
    width = intervals[1] - intervals[0]
    np.testing.assert_allclose(ours, intervals, atol=0.06 * width)


def test_they_batch_for_the_bootstrap():
    many = np.stack([SCORES, 2 * SCORES])
    for metric in (aggregates.mean, aggregates.median, aggregates.pooled_interquartile_mean):
        np.testing.assert_allclose(metric(many), [metric(SCORES), metric(2 * SCORES)])


def test_bad_scores_are_refused():
    for bad in ([1.0, 2.0], [[np.nan]], np.zeros((0, 2))):
        with pytest.raises(ValueError, match="scores must be finite"):
            plot.aggregates.mean(bad)
