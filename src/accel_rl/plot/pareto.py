"""Pareto fronts: mappings that no other beats in both throughput and efficiency."""

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
    """Draws mappings by throughput and efficiency, those that none beats in both joined by a line.

    Args:
        ax: where to draw.
        points: {mapping: (samples per second, samples per joule)}.
        front: those that are not dominated.
        what: where the joules come from; stands in the axis label.
        title: above the chart.

    Raises:
        ValueError: there are no points.
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
