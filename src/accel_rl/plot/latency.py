"""Latencies of calls, for each way to make them, on a logarithmic scale."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from accel_rl.plot.style import COLORS, quiet

_GAP = 0.6  # rows between two calls


def draw_latency(
    ax: Axes,
    calls: Mapping[str, Mapping[str, tuple[float, float, float]]],
    *,
    colors: Mapping[str, str] | None = None,
    what: str = "measured",
) -> None:
    """Draw one row for each way to make a call: a dot at the middle, a bar for the spread.

    The middle is also written as a number on the right.

    Args:
        ax: axes to draw on; the x axis becomes logarithmic.
        calls: {call: {way: (low, middle, high)}} in microseconds, such as the 5th, 50th and 95th
            percentile; calls and ways from top to bottom. A single call is not named.
        colors: {way: colour}, over the default ones; a way has one colour in all calls.
        what: origin of the times, for the axis label.

    Raises:
        ValueError: if there is no call, or three times are not positive, finite and in order.
    """
    if not calls or not all(calls.values()):
        raise ValueError("calls must name at least one call, and each at least one way")
    ways = list(dict.fromkeys(way for times in calls.values() for way in times))
    known = {way: COLORS[number % len(COLORS)] for number, way in enumerate(ways)}
    known |= dict(colors or {})
    names, rows, row = [], [], 0.0
    for call, times in calls.items():
        if len(calls) > 1:
            _write(ax, 0.01, row, call, fontweight="bold")
            row += 1
        for way, three in times.items():
            values = np.asarray(three, np.float64)
            if values.shape != (3,) or not (0 < values[0] <= values[1] <= values[2] < np.inf):
                raise ValueError(
                    f"calls[{call!r}][{way!r}] must be three positive times in order, got {three}"
                )
            low, middle, high = values
            ax.plot([low, high], [row, row], color=known[way], linewidth=5, alpha=0.3)
            ax.plot([middle], [row], "o", color=known[way], markersize=6)
            number = f"{middle:,.0f}" if middle >= 10 else f"{middle:.2g}"
            _write(ax, 1.01, row, f"{number} µs", fontsize="small")
            names.append(way)
            rows.append(row)
            row += 1
        row += _GAP
    ax.set_xscale("log")
    ends = [end for times in calls.values() for three in times.values() for end in three]
    few = max(ends) < 100 * min(ends)
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    ax.xaxis.set_major_formatter("{x:,g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(rows, labels=names)
    ax.set_ylim(row - _GAP - 0.4, -0.6)
    ax.set_xlabel(f"{what} time of a call, µs")
    quiet(ax, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _write(ax: Axes, part: float, row: float, text: str, **style: Any) -> None:
    """Write text in a row, at `part` of the axes' width."""
    ax.text(part, row, text, transform=ax.get_yaxis_transform(), va="center", **style)
