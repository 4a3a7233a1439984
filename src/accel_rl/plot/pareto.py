"""Pareto fronts of mappings, by throughput and energy efficiency."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from accel_rl.plot.style import COLORS, quiet


def draw_pareto(
    ax: Axes,
    points: Mapping[str, tuple[float, float]],
    front: Mapping[str, tuple[float, float]],
    *,
    what: str = "declared watts",
    title: str = "",
) -> None:
    """Draw mappings by throughput and efficiency, with the Pareto front as a line.

    Args:
        ax: axes to draw on.
        points: {mapping: (samples per second, samples per joule)}.
        front: the points that are not dominated.
        what: origin of the joules, for the axis label.
        title: title of the chart.

    Raises:
        ValueError: if there are no points.
    """
    if not points or not front:
        raise ValueError("points and front must hold at least one mapping, got none")
    ax.plot(*np.array(list(points.values())).T, "o", color="0.7", label="mappings")
    line = np.array(sorted(front.values()))
    ax.plot(line[:, 0], line[:, 1], "o-", color=COLORS[0], label="Pareto front")
    for name, place in front.items():
        ax.annotate(name, place, (4, 4), textcoords="offset points", fontsize="x-small")
    ax.set_xlabel("trained samples per second")
    ax.set_ylabel(f"trained samples per joule ({what})")
    ax.set_title(title)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,g}")
    ax.margins(0.15)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    quiet(ax)
