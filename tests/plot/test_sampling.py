"""Pictures of draws: bars at what was wanted, lines at what was drawn, distances on log scales."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from accel_rl.plot import (
    draw_distribution,
    draw_divergence,
    draw_estimates,
    draw_search,
)

EDGES, WANTED, FOUND = [0, 1, 2, 4], [0.2, 0.5, 0.3], [0.25, 0.5, 0.25]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_a_distribution_has_both_histograms(ax):
    draw_distribution(ax, EDGES, WANTED, FOUND, labels=("PER", "drawn"), color="#123456")
    wanted, found = (patch.get_data() for patch in ax.patches)
    np.testing.assert_array_equal(wanted.values, WANTED)
    np.testing.assert_array_equal(found.values, FOUND)
    np.testing.assert_array_equal(found.edges, EDGES)
    assert [patch.get_label() for patch in ax.patches] == ["PER", "drawn"]
    assert ax.get_xlim() == (0, 4)
    assert ax.get_ylim()[0] == 0


@pytest.mark.parametrize(
    ("exact", "sampled", "message"),
    [
        ([0.2, -0.1, 0.9], FOUND, "exact must be finite and 0 or more"),
        (WANTED, [0.2, np.nan, 0.8], "sampled must be finite and 0 or more"),
    ],
)
def test_distribution_refuses(ax, exact, sampled, message):
    with pytest.raises(ValueError, match=message):
        draw_distribution(ax, EDGES, exact, sampled)


def test_divergences_have_ticks_levels_and_logarithmic_axes(ax):
    curves = {"exact": [0.01, 0.002], "prefix": [0.02, 0.02]}
    draw_divergence(
        ax, [4, 20], curves, levels={"floor": 0.001}, styles={"prefix": {"marker": "^"}}
    )
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["exact"].get_xydata(), [(4, 0.01), (20, 0.002)])
    assert (lines["exact"].get_marker(), lines["prefix"].get_marker()) == ("o", "^")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax.figure.draw_without_rendering()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["4", "20"]
    assert [text.get_text() for text in ax.texts] == ["floor"]
    low, high = ax.get_ylim()
    assert low < 0.001
    assert high > 0.02


@pytest.mark.parametrize(
    ("x", "curves", "options", "message"),
    [
        ([1, 2], {"a": [1.0, 0.0]}, {}, r"curves\['a'\] must be finite and above 0"),
        ([0, 2], {"a": [1.0, 1.0]}, {}, "x must be finite and above 0"),
        ([1], {"a": [1.0]}, {"levels": {"b": np.inf}}, r"levels\['b'\] must be finite"),
    ],
)
def test_divergence_refuses(ax, x, curves, options, message):
    with pytest.raises(ValueError, match=message):
        draw_divergence(ax, x, curves, **options)


def test_estimates_are_drawn_where_both_are_positive(ax):
    estimates = {"a": ([0.1, 0.2, 0.0], [0.1, 0.3, 0.2]), "b": ([0.5, 0.4], [np.nan, 0.4])}
    draw_estimates(ax, estimates, colors={"b": "#123456"})
    first, second, diagonal = ax.lines
    np.testing.assert_array_equal(first.get_xydata(), [(0.1, 0.1), (0.2, 0.3)])
    np.testing.assert_array_equal(second.get_xydata(), [(0.4, 0.4)])
    assert second.get_color() == "#123456"
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert ax.get_xlim() == ax.get_ylim()


def test_a_search_shows_items_in_order(ax):
    priorities, members = np.array([0.9, 0.1, 0.5]), np.array([True, False, False])
    draw_search(
        ax, priorities, members, groups=[0, 0.5, 1], values=[0.3, 0.8], sets=([0.2, 0.7], [0.4, 1])
    )
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["item"].get_xydata(), [(0.1, 1), (0.5, 2)])
    np.testing.assert_array_equal(lines["candidate"].get_xydata(), [(0.9, 3)])
    np.testing.assert_array_equal(lines["representative value"].get_xdata(), [0.3, 0.8])
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches]
    np.testing.assert_allclose(spans, [(0.2, 0.4), (0.7, 1)])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["matched by a query", "item", "candidate", "representative value"]


def test_a_search_of_items_alone(ax):
    draw_search(ax, [0.2, 0.1], [False, False])
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.2])
    assert not ax.patches


@pytest.mark.parametrize(
    ("members", "sets", "message"),
    [
        ([True], None, "inhomogeneous"),
        ([True, False], ([0.1], []), "shorter than argument 1"),
    ],
)
def test_search_refuses(ax, members, sets, message):
    with pytest.raises(ValueError, match=message):
        draw_search(ax, [0.1, 0.2], members, sets=sets)
