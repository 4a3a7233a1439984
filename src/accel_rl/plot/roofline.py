"""Rooflines: performance of steps against the limits of compute and memory bandwidth."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from accel_rl.plot.style import COLORS, quiet


def draw_roofline(
    ax: Axes,
    points: Mapping[str, tuple[float, float]],
    *,
    peak_flops: float,
    bandwidth: float,
    title: str = "",
) -> None:
    """Draw performance over arithmetic intensity, below the roof of compute and memory.

    Args:
        ax: axes to draw on; both become logarithmic.
        points: {step: (FLOP per byte, FLOP per second)}; steps without FLOP are left out.
        peak_flops: FLOP per second.
        bandwidth: bytes per second.
        title: title of the chart.

    Raises:
        ValueError: if a peak is not above 0, or no point is.
    """
    if not (peak_flops > 0 and bandwidth > 0):
        raise ValueError(f"peaks must be above 0, got {peak_flops} and {bandwidth}")
    shown = {name: each for name, each in points.items() if min(each) > 0}
    if not shown:
        raise ValueError("points must hold one above 0, got none")
    ridge = peak_flops / bandwidth
    low = min(*(x for x, _ in shown.values()), ridge) / 4
    high = max(*(x for x, _ in shown.values()), ridge) * 4
    x = np.geomspace(low, high, 200)
    ax.loglog(x, np.minimum(peak_flops, x * bandwidth) / 1e9, color="0.3")
    for (name, (intensity, flops)), color in zip(shown.items(), COLORS * 2, strict=False):
        ax.loglog([intensity], [flops / 1e9], "o", color=color, label=name)
    ax.set_xlabel("FLOP per byte")
    ax.set_ylabel("GFLOP per second")
    ax.set_title(title)
    ax.legend(frameon=False)
    quiet(ax)
