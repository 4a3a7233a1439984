"""Stacked bars: every part where the ones before it end."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from accel_rl.plot import draw_breakdown

PARTS = ("cpu_to_pim", "pim_kernel", "inter_pim", "pim_to_cpu")
RUNS = {
    "first": dict(zip(PARTS, (0.001, 0.02, 0.003, 0.004), strict=True)),
    "second": dict(zip(PARTS, (0.0, 0.5, 0.0, 0.25), strict=True)),
}


@pytest.fixture
def ax():
    return Figure().subplots()


def test_bars_stack_in_milliseconds(ax):
    draw_breakdown(ax, RUNS)
    bars = np.array([[(bar.get_x(), bar.get_width()) for bar in part] for part in ax.containers])
    np.testing.assert_allclose(bars[:, 0], [(0, 1), (1, 20), (21, 3), (24, 4)])
    np.testing.assert_allclose(bars[:, 1], [(0, 0), (0, 500), (500, 0), (500, 250)])
    assert ax.get_xlabel() == "modelled time, ms"
    assert [text.get_text() for text in ax.texts] == ["28", "750"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["first", "second"]
    low, high = ax.get_ylim()
    assert low > high  # the first run is on top
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["CPU → PIM", "PIM kernel", "inter-PIM", "PIM → CPU"]


@pytest.mark.parametrize(
    ("longest", "unit"), [(50.0, "s"), (2.0, "ms"), (0.002, "µs"), (2e-6, "ns")]
)
def test_unit_follows_the_longest_bar(ax, longest, unit):
    draw_breakdown(ax, {"run": {"part": longest}}, what="measured")
    assert ax.get_xlabel() == f"measured time, {unit}"


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, r"runs\['b'\] has parts \['y'\], the first run has"),
        ({"a": {"x": -1.0}}, "seconds of runs must be finite and 0 or more"),
        ({"a": {"x": np.nan}}, "seconds of runs must be finite and 0 or more"),
    ],
)
def test_refuses(ax, runs, message):
    with pytest.raises(ValueError, match=message):
        draw_breakdown(ax, runs)
