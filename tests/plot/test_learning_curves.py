"""Inter-quartile means and bootstrap intervals, against SciPy and against known coverage."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from accel_rl import plot
from accel_rl.plot import Curve, bootstrap, draw_learning, interquartile_mean


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7, 8, 16, 33])
def test_interquartile_mean_is_scipy_s_trimmed_mean(number):
    scores = np.random.default_rng(number).normal(size=(number, 6)) ** 3
    np.testing.assert_allclose(
        interquartile_mean(scores), stats.trim_mean(scores, 0.25, axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(
        interquartile_mean(scores.T, axis=1), stats.trim_mean(scores, 0.25, axis=0), rtol=1e-12
    )


def test_interquartile_mean_of_a_known_case():
    """Of 0..7 the middle four are 2, 3, 4, 5, whatever the outermost are."""
    assert interquartile_mean([7, 0, 6, 1, 5, 2, 4, 3]) == 3.5
    assert interquartile_mean([7e9, -1e9, 6, 1, 5, 2, 4, 3]) == 3.5


def test_interval_of_two_values_is_known():
    """Means of two draws from {0, 1}: 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4."""
    low, high = bootstrap([[0.0, 1.0]], confidence=0.95)
    assert (low, high) == (0, 1)
    low, high = bootstrap([[0.0, 1.0]], confidence=0.4)
    assert (low, high) == (0.5, 0.5)


def test_interval_is_scipy_s():
    """Against scipy.stats.bootstrap, which resamples one group: the same up to resampling noise."""
    scores = np.random.default_rng(0).gamma(2.0, size=30)
    ours = bootstrap([scores], resamples=20_000)
    theirs = stats.bootstrap(
        (scores,), interquartile_mean, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    # A quantile of 20,000 resamples is known to about 1 % of the interval's width.
    width = theirs.high - theirs.low
    assert abs(ours.low - theirs.low) < 0.06 * width
    assert abs(ours.high - theirs.high) < 0.06 * width


def test_interval_covers():
    """90 % intervals of 40 normal scores hold the true mean in about 90 % of 400 experiments.

    The bootstrap is a little narrow at 40 scores. The seed is fixed; over seeds, the bounds are
    more than three standard deviations away.
    """
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(40, 400))  # 400 experiments as points, which share their resamples
    low, high = bootstrap([scores], confidence=0.9, resamples=1_000)
    covered = np.mean((low <= 0) & (high >= 0))
    assert 0.82 < covered < 0.94


def test_resampling_stays_within_groups():
    """Groups that are constant have no spread, however much they differ from each other."""
    low, high = bootstrap([np.zeros(8), np.full(8, 100.0)])
    assert low == high == 50
    pooled = bootstrap([np.repeat([0.0, 100.0], 8)])
    assert pooled.high - pooled.low > 20


def test_runs_are_drawn_whole():
    """Scores of a run that always sum to zero do so in each resample."""
    first = np.random.default_rng(1).normal(size=6)
    seen = []

    def watch(group):
        seen.append(group)
        return interquartile_mean(group, 1)

    bootstrap([np.stack([first, -first], 1)], watch, resamples=50)
    np.testing.assert_array_equal(np.concatenate(seen).sum(axis=2), 0)


def test_difference_of_two_methods():
    rng = np.random.default_rng(2)
    better, worse = rng.normal(3, 1, 30), rng.normal(0, 1, 30)
    low, high = bootstrap(
        [better, worse], lambda a, b: interquartile_mean(a, 1) - interquartile_mean(b, 1)
    )
    assert 2 < low < 3 < high < 4


def test_blocks_change_nothing(monkeypatch):
    scores = np.random.default_rng(3).normal(size=(10, 7))
    whole = bootstrap([scores], resamples=100)
    monkeypatch.setattr("accel_rl.plot.learning._BLOCK", 700)
    cut = bootstrap([scores], resamples=100)
    assert np.all(np.abs(cut.low - whole.low) < 1)
    assert bootstrap([scores], resamples=100).low.tolist() == cut.low.tolist()  # repeatable


def test_curves_bands_and_labels():
    ax = Figure().subplots()
    scores = np.arange(24.0).reshape(8, 3)
    curves = {"many": Curve([10, 20, 30], scores), "one": Curve([10, 20], [[5.0, 6.0]])}
    draw_learning(ax, curves, reference=("solved", 20))
    many, one, level = ax.lines
    np.testing.assert_allclose(many.get_ydata(), stats.trim_mean(scores, 0.25, axis=0))
    assert one.get_ydata().tolist() == [5, 6]
    assert set(level.get_ydata()) == {20}
    (band,) = ax.collections  # a single seed has no interval
    heights = band.get_paths()[0].vertices[:, 1]
    low, high = bootstrap([scores])
    assert heights.min() == pytest.approx(low.min())
    assert heights.max() == pytest.approx(high.max())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["many (8 seeds)", "one (1 seed)", "solved"]
    assert ax.get_xlabel() == "environment steps"


def test_styles_are_named_by_the_labels_given():
    ax = Figure().subplots()
    draw_learning(ax, {"one": Curve([10, 20], [[5.0, 6.0]])}, styles={"one": {"color": "red"}})
    assert ax.lines[0].get_color() == "red"
    with pytest.raises(ValueError, match="'other' has a band or a style, but no curve"):
        draw_learning(ax, {"one": Curve([10, 20], [[5.0, 6.0]])}, styles={"other": {}})


def test_a_seed_whose_episodes_did_not_end_keeps_its_last_score():
    nan = np.nan
    scores = [[nan, 1.0, nan, nan, 4.0], [5.0, nan, nan, 6.0, nan]]
    kept = plot.without_gaps(Curve([10, 20, 30, 40, 50], scores))
    np.testing.assert_array_equal(kept.steps, [20, 40, 50])
    np.testing.assert_array_equal(kept.scores, [[1, 1, 4], [5, 6, 6]])
    strict = plot.without_gaps(Curve([10, 20], [[nan, 1.0], [2.0, 3.0]]), keep=False)
    np.testing.assert_array_equal(strict.steps, [20])
    ax = Figure().subplots()
    draw_learning(ax, {"one": Curve([10, 20, 30, 40, 50], scores)})
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[20, 3], [40, 3.5], [50, 5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interquartile_mean([]), "one finite value"),
        (lambda: interquartile_mean([1.0, np.nan]), "finite"),
        (
            lambda: draw_learning(Figure().subplots(), {"a": Curve([1], [[np.nan]])}),
            "'a' has no point at which every seed has a score",
        ),
        (lambda: bootstrap([[1.0]], confidence=1), "confidence must be above 0"),
        (lambda: bootstrap([[[1.0, 2.0]], [[1.0]]]), "of the same N"),
        (
            lambda: draw_learning(Figure().subplots(), {"a": Curve([1, 2], [[1.0]])}),
            "scores must have shape",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_names_are_public():
    assert {"Curve", "Interval", "bootstrap", "draw_learning", "interquartile_mean"} <= set(
        plot.__all__
    )


def test_seeds_have_lines_of_their_own():
    ax = Figure().subplots()
    scores = [[1.0, 2.0], [3.0, 5.0]]
    draw_learning(ax, {"a": Curve([1, 2], scores)}, per_seed=True, reference=("best", 9.0))
    seeds = [line.get_ydata().tolist() for line in ax.lines[-2:]]
    assert seeds == scores
    assert {line.get_color() for line in ax.lines[-2:]} == {ax.lines[0].get_color()}
