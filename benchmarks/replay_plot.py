"""A bar chart of what a step takes, by capacity and system."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from common import Report
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from replay_calls import CPPRB, TORCHRL
from replay_cases import CALLS, LEAST, learner_case, step_case
from replay_memories import AUTO, DOCUMENTED, REMEDY, TREE, UNIFORM

COLOURS = {
    UNIFORM: "0.75",
    AUTO: "#0b5fa5",
    TREE: "#7db4dc",
    REMEDY: "#f0b070",
    DOCUMENTED: "#d9661f",
    CPPRB + CALLS: "#8a9a5b",
    TORCHRL + CALLS: "#9b72aa",
}


def plot(report: Report, path: Path, capacities: Sequence[int], batch_size: int) -> None:
    """Draw this run's least times of steps, without and with a learner, as PNG."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(12, 5), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        titles = ("add 16, sample, update", "the same with a small TD learner")
        for axes, title, name in zip((left, right), titles, (step_case, learner_case), strict=True):
            axes.set_title(title)
            axes.set(yscale="log")
            axes.grid(axis="y", which="major", alpha=0.3)
            axes.set_axisbelow(True)
            _bars(axes, report, {n: name(n, batch_size) for n in capacities})
        left.set_ylabel("least CPU time on one core, us per step")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        figure.suptitle(
            f"Prioritised replay in a compiled loop, batch {batch_size}; {report.machine['cpu']}"
        )
        figure.savefig(path, dpi=150, format="png")


def _bars(axes: Axes, report: Report, cases: dict[int, str]) -> None:
    """One group of bars for each capacity that was measured, each bar with its number."""
    times = {
        (record.case, record.system): record.value
        for record in report.records
        if record.metric.startswith(LEAST)
    }
    shown = {n: case for n, case in cases.items() if any(key[0] == case for key in times)}
    systems = [s for s in COLOURS if any((case, s) in times for case in shown.values())]
    width = 0.85 / max(1, len(systems))
    for k, system in enumerate(systems):
        values = [times.get((case, system), np.nan) for case in shown.values()]
        where = np.arange(len(shown)) + (k - (len(systems) - 1) / 2) * width
        bars = axes.bar(where, values, width, label=system, color=COLOURS[system])
        axes.bar_label(bars, [_short(x) for x in values], fontsize=7, padding=1)
    axes.set_xticks(range(len(shown)), [f"{n:,}" for n in shown])
    axes.set_xlabel("capacity")


def _short(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
