"""A picture of `training.py`: speed by case, and what was learned with the same steps."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np
from common import Report
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from training_cases import OURS, PLAIN, WALL
from training_settings import MAX_STEPS

from accel_rl import plot as plots

COLOURS = {OURS: "#0b5fa5", PLAIN: "#d9661f", "SB3": "#8a9a5b", "SBX": "#9b72aa"}
Curves = Mapping[str, tuple[np.ndarray, np.ndarray]]


def plot(report: Report, curves: Mapping[str, Curves], path: Path) -> None:
    """Draw this run as PNG.

    Args:
      report: holds the rates.
      curves: by setting and system, steps [N] and returns [seeds, N].
      path: where to.
    """
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(12, 7.5), layout="constrained")
        top, bottom = figure.subfigures(2, 1)
        _bars(top.subplots(), report)
        for ax, (name, each) in zip(
            bottom.subplots(1, len(curves), sharey=True, squeeze=False)[0],
            curves.items(),
            strict=True,
        ):
            shown = {system: plots.Curve(*curve) for system, curve in each.items()}
            plots.draw_learning(ax, shown, reference=("most", MAX_STEPS))
            ax.set_title(f"setting {name}: returns of episodes while training")
        figure.suptitle(f"DQN on CartPole, equal hyper-parameters; {report.machine['cpu']}")
        figure.savefig(path, dpi=100, format="png")


def _bars(ax: Axes, report: Report) -> None:
    """One group of bars for each case in which the plain loop ran."""
    rates = {(r.case, r.system): 1e6 * r.value for r in report.records if r.metric == WALL}
    cases = list(dict.fromkeys(case for case, system in rates if system == PLAIN))
    width = 0.85 / len(COLOURS)
    for number, (system, colour) in enumerate(COLOURS.items()):
        values = [rates.get((case, system), np.nan) for case in cases]
        where = np.arange(len(cases)) + (number - (len(COLOURS) - 1) / 2) * width
        bars = ax.bar(where, values, width, label=system, color=colour)
        labels = ["" if np.isnan(value) else f"{value / 1e3:.3g}k" for value in values]
        ax.bar_label(bars, labels, fontsize=7, padding=1)
    ax.set_xticks(range(len(cases)), [case.removeprefix("setting ") for case in cases])
    ax.set(yscale="log", ylabel="environment steps per second")
    ax.grid(axis="y", which="major", alpha=0.3)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize="small", ncols=len(COLOURS))
