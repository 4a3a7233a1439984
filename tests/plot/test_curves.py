"""Lines, bands and reference levels, read back from the axes."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from accel_rl.plot import COLORS, draw_curves


@pytest.fixture
def ax():
    return Figure().subplots()


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_styles_and_reference(ax):
    curves = {"a": [1.0, 2.0, 4.0], "b": [3.0, 2.0, 1.0]}
    styles = {"b": {"color": "#123456", "linestyle": "--"}}
    draw_curves(ax, [1, 2, 3], curves, styles=styles, reference=("best", 5.0))
    first, second, level = ax.lines
    np.testing.assert_array_equal(first.get_xydata(), [[1, 1], [2, 2], [3, 4]])
    np.testing.assert_array_equal(second.get_ydata(), [3, 2, 1])
    assert to_hex(first.get_color()) == COLORS[0]
    assert (to_hex(second.get_color()), second.get_linestyle()) == ("#123456", "--")
    assert set(level.get_ydata()) == {5.0}
    assert legend(ax) == ["a", "b", "best"]
    assert ax.get_xlabel() == "passes over the data"


def test_bands_and_own_steps(ax):
    steps = {"short": [1, 2], "long": [1, 2, 3]}
    curves = {"short": [0.0, 1.0], "long": [0.0, 1.0, 2.0]}
    draw_curves(ax, steps, curves, bands={"long": ([-1, 0, 1], [1, 2, 3])})
    (band,) = ax.collections
    outline = band.get_paths()[0].vertices
    assert {tuple(point) for point in outline} >= {(1, -1), (3, 1), (1, 1), (3, 3)}
    np.testing.assert_allclose(band.get_facecolor()[0][:3], _rgb(ax.lines[1].get_color()))
    assert ax.lines[0].get_xdata().tolist() == [1, 2]


def _rgb(color):
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))


def test_refuses_a_band_without_a_curve(ax):
    with pytest.raises(ValueError, match="'c' has a band or a style, but no curve"):
        draw_curves(ax, [1], {"a": [1.0]}, bands={"c": ([0], [1])})
