"""Every number in its cell, in ink that can be read."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from accel_rl.plot import draw_heatmap


@pytest.fixture
def ax():
    return Figure().subplots()


def test_cells(ax):
    image = draw_heatmap(ax, [[0.0, 1.0, np.nan], [2.0, 3.25, 4.0]], ["a", "b"], [1, 5, 10])
    written = {text.get_position(): text.get_text() for text in ax.texts}
    expected = {(0, 0): "0.00", (1, 0): "1.00", (0, 1): "2.00", (1, 1): "3.25", (2, 1): "4.00"}
    assert written == expected
    assert image.get_array().mask.sum() == 1
    ink = {text.get_text(): text.get_color() for text in ax.texts}
    assert ink["0.00"] == "#ffffff"  # on the darkest colour
    assert ink["4.00"] == "#1b1b1e"  # on the brightest
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "5", "10"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    assert len(ax.figure.axes) == 2  # the colour bar


@pytest.mark.parametrize(
    ("values", "rows", "columns", "message"),
    [
        ([[1.0, 2.0]], ["a", "b"], [1, 2], "does not match the number of labels"),
        ([[1.0, 2.0]], ["a"], [1], "does not match the number of labels"),
    ],
)
def test_refuses(ax, values, rows, columns, message):
    with pytest.raises(ValueError, match=message):
        draw_heatmap(ax, values, rows, columns)
