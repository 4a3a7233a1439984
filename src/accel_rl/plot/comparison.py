"""Comparison of two systems' figures on several cases."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from accel_rl.plot.style import COLORS, quiet


class Compared(NamedTuple):
    """One case: figures of our system and a rival, with their ranges if known."""

    label: str
    ours: float
    rival: float
    ours_range: tuple[float, float] | None = None
    rival_range: tuple[float, float] | None = None


def draw_comparison(ax: Axes, cases: Sequence[Compared], *, xlabel: str) -> None:
    """Draw one row for each case: two connected dots, with their ranges as thin lines.

    The axis is logarithmic if all figures are positive and the largest is at least ten times the
    smallest.

    Args:
      ax: axes to draw on.
      cases: cases from top to bottom, at least one.
      xlabel: name and unit of the figures.
    """
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
