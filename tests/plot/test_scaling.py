"""Speed-ups over the first point, on doubling axes."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from accel_rl.plot import draw_scaling

DPUS = [125, 250, 1000]


@pytest.fixture
def ax():
    return Figure().subplots()


def test_speedups_and_ideal(ax):
    draw_scaling(ax, DPUS, {"kernel": [8.0, 4.0, 1.25], "all": [8.0, 8.0, 16.0]})
    ideal, kernel, everything = ax.lines
    np.testing.assert_array_equal(ideal.get_ydata(), [1, 2, 8])
    np.testing.assert_array_equal(kernel.get_xydata(), [[125, 1], [250, 2], [1000, 6.4]])
    np.testing.assert_array_equal(everything.get_ydata(), [1, 1, 0.5])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["ideal", "kernel: 6.4x", "all: 0.5x"]
    assert ax.get_ylabel() == "modelled speed-up over 125 DPUs"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["125", "250", "1,000"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0.5", "1", "2", "4", "8"]


@pytest.mark.parametrize(
    ("dpus", "seconds", "message"),
    [
        ([250, 125], {}, "dpus must ascend"),
        (DPUS, {"a": [1.0, 0.0, 1.0]}, r"seconds\['a'\] must be finite and above 0"),
    ],
)
def test_refuses(ax, dpus, seconds, message):
    with pytest.raises(ValueError, match=message):
        draw_scaling(ax, dpus, seconds)
