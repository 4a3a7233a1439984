"""Figures composed of the drawings of `accel_rl.plot`, and their files.

Figures are made without pyplot: no display, no global state.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from accel_rl import envs, plot
from accel_rl.io import atomic_write
from accel_rl.types import ArrayLike

_DPI = 120


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG atomically."""
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=_DPI)


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Make an empty figure, in inches, with constrained layout."""
    figure = Figure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(title)
    return figure


def policy_figure(environment: str, values: ArrayLike, title: str) -> Figure:
    """Draw state values and greedy policy; for Taxi before and after the pick-up.

    Args:
        environment: a tabular environment's name.
        values: [S, A] action values.
        title: names the run.
    """
    table = np.asarray(values)
    policy = table.argmax(axis=1)
    layouts = _layouts(environment)
    height, width = layouts[0].states.shape
    cell = 1.15 if height * width <= 30 else 0.75
    size = (cell * width + 1.0) * len(layouts), cell * height + 1.2
    figure = new_figure(*size, f"{environment}: value and greedy action\n{title}")
    for ax, layout in zip(
        figure.subplots(1, len(layouts), squeeze=False).flat, layouts, strict=True
    ):
        plot.draw_policy(ax, layout, table, policy)
    return figure


def curve_figure(
    environment: str, passes: ArrayLike, returns: ArrayLike, label: str, optimal: float | None
) -> Figure:
    """Draw the learning curve of one run."""
    figure = new_figure(6.4, 4.0, f"{environment}: exact return of the greedy policy")
    reference = None if optimal is None else ("best possible", optimal)
    plot.draw_curves(figure.subplots(), passes, {label: returns}, reference=reference)
    return figure


def parts_figure(title: str, runs: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw the modelled time parts of one or more runs."""
    figure = new_figure(7.2, 1.4 + 0.32 * len(runs), title)
    plot.draw_breakdown(figure.subplots(), runs)
    return figure


def _layouts(environment: str) -> Sequence[Any]:
    if environment.startswith("Taxi"):
        return [
            envs.layout(environment, passenger=passenger, destination="G")
            for passenger in ("Y", "taxi")
        ]
    return [envs.layout(environment)]
