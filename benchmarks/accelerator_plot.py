"""The picture of `accelerator.py`: steps of replay, and trainings by seeds."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
from accelerator_fast import OURS, STEP, per_case
from accelerator_training import LIBRARY, PLAIN, training_case
from common import Report
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from replay_memories import DOCUMENTED, REMEDY, UNIFORM

COLOURS = dict(
    zip(
        (*OURS.values(), UNIFORM, DOCUMENTED, REMEDY, LIBRARY, PLAIN),
        ("#7db4dc", "#0b5fa5", "#08306b", "0.6", "#d9661f", "#f0b070", "#0b5fa5", "#d9661f"),
        strict=True,
    )
)
CAPACITIES = tuple(2**n for n in range(10, 28))
SEEDS = tuple(2**n for n in range(13))


def plot(report: Report, path: Path) -> None:
    """Draw what was measured, as PNG; what was not is left out."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(12, 4.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        metric = f"least wall time for a {STEP}"
        _lines(left, report, CAPACITIES, lambda n: per_case(n, 256), metric)
        left.set(title="prioritised replay: a step in a compiled loop, batch 256")
        left.set(xlabel="capacity, items", ylabel="wall time, us")
        _lines(right, report, SEEDS, _cartpole, "environment steps")
        right.set(title="DQN on CartPole-v1, 10 environments a seed, fused")
        right.set(xlabel="seeds", ylabel="environment steps, M/s")
        small = " (small sizes: a dry run)" if report.head["quick"] else ""
        figure.suptitle(f"{report.machine.get('accelerator', 'no device')}{small}")
        figure.savefig(path, dpi=150, format="png")


def _cartpole(seeds: int) -> str:
    return training_case("DQN on CartPole-v1", seeds, 10)


def _lines(
    axes: Axes, report: Report, sizes: Sequence[int], case: Callable[[int], str], metric: str
) -> None:
    for system, colour in COLOURS.items():
        found = [(n, report.find(case(n), system, metric)) for n in sizes]
        points = [(n, record.value) for n, record in found if record is not None]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=system)
    axes.set(xscale="log", yscale="log")
    axes.grid(which="major", alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False)
