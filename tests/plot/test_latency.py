"""Latencies: a dot at the middle, a bar from low to high, ways in the same colour everywhere."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from accel_rl.plot import COLORS, draw_latency

CALLS = {
    "push": {"TCP": (20.0, 30.0, 90.0), "shared memory": (0.5, 0.7, 0.9)},
    "sample": {"shared memory": (1.0, 2.0, 4.0), "TCP": (40.0, 1500.0, 2000.0)},
}


@pytest.fixture
def ax():
    return Figure().subplots()


def test_rows_stand_in_order_with_their_numbers(ax):
    draw_latency(ax, CALLS)
    bars, dots = ax.lines[::2], ax.lines[1::2]
    assert [list(bar.get_xdata()) for bar in bars] == [[20, 90], [0.5, 0.9], [1, 4], [40, 2000]]
    assert [dot.get_xdata()[0] for dot in dots] == [30, 0.7, 2, 1500]
    rows = [dot.get_ydata()[0] for dot in dots]
    np.testing.assert_allclose(ax.get_yticks(), rows)
    assert np.all(np.diff(rows) > 0)
    low, high = ax.get_ylim()
    assert low > max(rows)
    assert high < 0  # the first call is on top
    assert [dot.get_color() for dot in dots] == [COLORS[0], COLORS[1], COLORS[1], COLORS[0]]
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["push", "30 µs", "0.7 µs", "sample", "2 µs", "1,500 µs"]
    assert ax.get_xlabel() == "measured time of a call, µs"
    assert ax.get_xscale() == "log"


def test_one_call_names_only_its_ways(ax):
    draw_latency(ax, {"push": CALLS["push"]}, colors={"TCP": "red"}, what="modelled")
    assert [text.get_text() for text in ax.texts] == ["30 µs", "0.7 µs"]
    assert ax.lines[1].get_color() == "red"
    assert ax.get_xlabel() == "modelled time of a call, µs"


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"push": {"TCP": (2.0, 1.0, 3.0)}}, r"\['push'\]\['TCP'\] must be in order"),
        ({"push": {"TCP": (0.0, 1.0, 3.0)}}, "finite and above 0"),
        ({"push": {"TCP": (1.0, 2.0, np.inf)}}, "finite and above 0"),
    ],
)
def test_refuses(ax, calls, message):
    with pytest.raises(ValueError, match=message):
        draw_latency(ax, calls)
