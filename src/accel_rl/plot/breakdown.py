"""Breakdown of run times into parts, one stacked bar for each run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import offset_copy

from accel_rl.plot.style import COLORS, PART_COLORS, PART_LABELS, quiet


def draw_breakdown(
    ax: Axes,
    runs: Mapping[str, Mapping[str, float]],
    *,
    what: str = "modelled",
    totals: bool = True,
) -> None:
    """Draw one horizontal bar for each run, stacked from its parts, with the first run on top.

    Args:
        ax: axes to draw on.
        runs: {run: {part: seconds}}; all runs have the parts of the first, in its order. The four
            parts of a PIM run (`cpu_to_pim`, `pim_kernel`, `inter_pim`, `pim_to_cpu`) have their
            own names and colours.
        what: origin of the seconds, for the axis label.
        totals: write the sum at the end of each bar.

    Raises:
        ValueError: if there is no run or no part, a run has other parts, or a time is negative or
            not finite.
    """
    if not runs:
        raise ValueError("runs must name at least one run, got none")
    parts = list(next(iter(runs.values())))
    if not parts:
        raise ValueError(f"runs[{next(iter(runs))!r}] must have at least one part, got none")
    for run, times in runs.items():
        if set(times) != set(parts):
            raise ValueError(f"runs[{run!r}] has parts {list(times)}, the first run has {parts}")
    table = np.array([[times[part] for part in parts] for times in runs.values()], np.float64)
    if not (np.isfinite(table) & (table >= 0)).all():
        raise ValueError("runs must hold finite seconds of 0 or more")
    scale, unit = _unit(table.sum(axis=1).max())
    table, rows = table * scale, np.arange(len(runs))
    left = np.zeros(len(runs))
    for number, part in enumerate(parts):
        color = PART_COLORS.get(part, COLORS[number % len(COLORS)])
        label = PART_LABELS.get(part, part)
        ax.barh(rows, table[:, number], left=left, color=color, label=label, height=0.72)
        left = left + table[:, number]
    ax.set_ylim(len(runs) - 0.4, -0.6)
    if totals:
        for row, total in zip(rows, left, strict=True):
            text = f"{total:,.0f}" if total >= 100 else f"{total:.3g}"
            style: dict[str, Any] = {
                "textcoords": "offset points",
                "va": "center",
                "fontsize": "small",
            }
            ax.annotate(text, (total, row), (3, 0), **style)
        ax.margins(x=0.1)
    ax.set_yticks(rows, labels=list(runs))
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.set_xlabel(f"{what} time, {unit}")
    figure: Any = ax.figure
    below: Any = offset_copy(ax.transAxes, figure, y=-38, units="points")
    ax.legend(  # below the bars: inside, it would cover some
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=below,
        borderaxespad=0.0,
        ncols=len(parts),
        columnspacing=1.0,
        handlelength=1.2,
        frameon=False,
        fontsize="small",
    )
    quiet(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _unit(longest: float) -> tuple[float, str]:
    """Return the factor and name of the unit that suits the longest bar."""
    for scale, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if longest * scale >= 10:
            return scale, unit
    return 1e9, "ns"
