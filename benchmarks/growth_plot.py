"""Page of growth curves on logarithmic axes, one panel for each case and unit."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from growth_fit import Case, Curve, bound, fitted_line, points, upper_half
from matplotlib.axes import Axes

from accel_rl.plot import style

COLUMNS = 5
Find = Callable[[str, str, str], float | None]


def panels(cases: Sequence[Case], find: Find) -> list[tuple[Case, str, list[Curve]]]:
    """Return the curves of each case and unit that were measured."""
    found = []
    for case in cases:
        measured = [each for each in case.curves if points(find, case, each.metric)[0]]
        for unit in dict.fromkeys(each.unit for each in measured):
            found.append((case, unit, [each for each in measured if each.unit == unit]))
    return found


def draw_panel(ax: Axes, case: Case, unit: str, curves: Sequence[Curve], find: Find) -> None:
    """Draw curves of one unit, with the fitted lines behind them."""
    least, most, marked = math.inf, 0.0, []
    reached: set[int] = set()
    for curve, color in zip(curves, style.COLORS, strict=False):
        sizes, values = points(find, case, curve.metric)
        least, most = min(least, *values), max(most, *values)
        reached.update(sizes)
        label, line = f"{curve.metric}: too few sizes", fitted_line(sizes, values)
        above = False
        if line is not None:
            slope, start = line
            above = slope > round(bound(curve, sizes), 3)
            label = f"{curve.metric}: {slope:+.2f}{' >' if above else ','} {curve.order}"
            x = np.asarray(upper_half(sizes), float)
            ax.plot(x, np.exp(start) * x**slope, color=color, linewidth=5, alpha=0.25)
        ax.plot(sizes, values, marker="o", markersize=3, linewidth=1, color=color, label=label)
        marked.append(above)
    ax.set_xscale("log")
    ax.set_yscale("log")
    if max(reached) < 20 * min(reached):  # decades alone would mark one size or none
        ax.set_xticks(sorted(reached), [f"{size:,}" for size in sorted(reached)])
    if most < 10 * least:  # a decade at least, so that flat curves look flat
        middle = math.sqrt(least * most)
        least, most = middle / math.sqrt(10), middle * math.sqrt(10)
    # Room above the curves for the legend, in proportion to its lines.
    ax.set_ylim(least / 1.5, most * (most / least) ** (0.12 + 0.16 * len(curves)) * 1.2)
    ax.set_title(case.title, fontsize=8)
    ax.set_xlabel(case.axis, fontsize=7)
    ax.set_ylabel(unit, fontsize=7)
    ax.tick_params(labelsize=6, which="both")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter("")
    legend = ax.legend(fontsize=6, loc="upper left", handlelength=1.2, borderaxespad=0.1)
    for text, above in zip(legend.get_texts(), marked, strict=True):
        text.set(color=style.COLORS[4] if above else "black", weight="bold" if above else "normal")
    style.quiet(ax)


def draw(cases: Sequence[Case], find: Find, path: Path) -> None:
    """Draw all that was measured, with the fitted exponents over the upper half of the sizes."""
    found = panels(cases, find)
    rows = max(1, math.ceil(len(found) / COLUMNS))
    with plt.style.context(style.STYLE):
        figure, axes = plt.subplots(rows, COLUMNS, figsize=(16, 2.35 * rows), squeeze=False)
        for ax, panel in zip(axes.flat, found, strict=False):
            draw_panel(ax, *panel, find)
        for ax in axes.flat[len(found) :]:
            ax.set_visible(False)
        figure.suptitle(
            "Growth by size: exponent fitted over the upper half of the sizes, and stated order",
            fontsize=10,
        )
        figure.savefig(path, dpi=110)
        plt.close(figure)
