"""Two systems on several cases: how far apart their figures are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from accel_rl.plot.style import COLORS, quiet


class Compared(NamedTuple):
    """A case: the figures of ours and of a rival, and the range of each if it is known."""

    label: str
    ours: float
    rival: float
    ours_range: tuple[float, float] | None = None
    rival_range: tuple[float, float] | None = None


def draw_comparison(ax: Axes, cases: Sequence[Compared], *, xlabel: str) -> None:
    """Draws a row for each case: two dots, joined, with their ranges as thin lines.

    The axis is logarithmic where all figures are positive and some ten times others.

    Args:
      ax: where to draw.
      cases: from the top down, at least one.
      xlabel: what the figures are, with the unit.

    Raises:
      ValueError: there are no cases.
    """
    if not cases:
        raise ValueError("there must be at least one case to compare")
    rows = np.arange(len(cases))[::-1]
    for row, case in zip(rows, cases, strict=True):
        ax.plot([case.ours, case.rival], [row, row], color="#bbbbbb", linewidth=2.2, zorder=1)
    sides = (
        ("ours", COLORS[0], "o", [(each.ours, each.ours_range) for each in cases]),
        ("rival", COLORS[4], "D", [(each.rival, each.rival_range) for each in cases]),
    )
    everything = []
    for name, color, marker, found in sides:
        values = [value for value, _ in found]
        ax.scatter(values, rows, color=color, marker=marker, s=34, zorder=3, label=name)
        for row, (_, ends) in zip(rows, found, strict=True):
            if ends is not None:
                ax.plot(ends, [row, row], color=color, linewidth=1.2, zorder=2)
        everything += values
    if min(everything) > 0 and max(everything) >= 10 * min(everything):
        ax.set_xscale("log")
        subs = (1, 2, 5) if max(everything) <= 200 * min(everything) else (1,)
        ax.xaxis.set_major_locator(LogLocator(subs=subs))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(rows, [case.label for case in cases])
    ax.set(xlabel=xlabel, ylim=(-0.7, len(cases) - 0.3))
    ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    quiet(ax, "x")
    ax.tick_params(axis="y", length=0)
