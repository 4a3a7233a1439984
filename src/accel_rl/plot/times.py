"""Times of runs: bars of their parts, timelines of workers, and latencies of calls."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.transforms import offset_copy

from accel_rl.plot.style import COLORS, PART_COLORS, PART_LABELS, positive, quiet


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
    """
    parts = list(next(iter(runs.values())))
    for run, times in runs.items():
        if set(times) != set(parts):
            raise ValueError(f"runs[{run!r}] has parts {list(times)}, the first run has {parts}")
    found = [[times[part] for part in parts] for times in runs.values()]
    table = positive("seconds of runs", found, zero=True)
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


STEPS = ("collect", "insert", "sample", "update", "learn", "sync", "handoff")


def draw_timeline(
    ax: Axes,
    spans: Sequence[tuple[str, str, float, float]],
    *,
    title: str = "",
    seconds: float | None = None,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Draw a Gantt chart: one row for each worker, one bar for each of its steps.

    Args:
        ax: axes to draw on.
        spans: (worker, step, start, end), in seconds.
        title: title of the chart; states whether times are measured, predicted or modelled.
        seconds: end of the time shown, from 0; None for all.
        colors: {step: colour}; the steps of a training program have default colours.
    """
    for span in spans:
        if not span[2] <= span[3]:
            raise ValueError(f"spans must end after they start, got {span}")
    known = dict(zip(STEPS, COLORS, strict=False)) | {"handoff": "0.8"} | dict(colors or {})
    workers = list(dict.fromkeys(worker for worker, *_ in spans))
    workers.sort(key=_order)
    most = max(end for *_, end in spans) if seconds is None else seconds
    scale, unit = (1e6, "µs") if most < 2e-3 else (1e3, "ms") if most < 2 else (1.0, "s")
    used: dict[str, str] = {}
    for worker, step, start, end in spans:
        if start >= most:
            continue
        color = known.setdefault(step, COLORS[len(known) % len(COLORS)])
        used[step] = color
        row = workers.index(worker)
        width = (min(end, most) - start) * scale
        ax.barh(row, width, left=start * scale, height=0.7, color=color, linewidth=0)
    ax.set_yticks(range(len(workers)), workers)
    ax.set_ylim(len(workers) - 0.5, -0.5)
    ax.set_xlim(0, most * scale)
    ax.set_xlabel(f"time ({unit})")
    ax.set_title(title)
    order = sorted(used, key=lambda step: STEPS.index(step) if step in STEPS else len(STEPS))
    handles = [Patch(color=used[step], label=step) for step in order]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    quiet(ax)


def _order(worker: str) -> tuple[int, str]:
    """Order workers as transitions flow: from actors through the buffer to the learner."""
    flow = ("actor", "inserter", "buffer", "sampler", "learner", "updater")
    name = worker.split("_")[0]
    return flow.index(name) if name in flow else len(flow), worker


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
    """
    ways = list(dict.fromkeys(way for times in calls.values() for way in times))
    known = {way: COLORS[number % len(COLORS)] for number, way in enumerate(ways)}
    known |= dict(colors or {})
    names, rows, row = [], [], 0.0
    for call, times in calls.items():
        if len(calls) > 1:
            _write(ax, 0.01, row, call, fontweight="bold")
            row += 1
        for way, three in times.items():
            low, middle, high = positive(f"calls[{call!r}][{way!r}]", three)
            if not low <= middle <= high:
                raise ValueError(f"calls[{call!r}][{way!r}] must be in order, got {three}")
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
