"""Learning curves: the policy's return over passes over the data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from accel_rl.plot.style import COLORS, check_lengths, numbers, quiet
from accel_rl.types import ArrayLike


def draw_curves(
    ax: Axes,
    x: ArrayLike,
    curves: Mapping[str, Any],
    *,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    reference: tuple[str, float] | None = None,
    xlabel: str = "passes over the data",
    ylabel: str = "return per episode",
) -> None:
    """Draw one learning curve for each label.

    Args:
        ax: axes to draw on.
        x: [N], passes (or steps, or seconds); or {label: [N]} if curves differ in length.
        curves: {label: [N]} in the order of the legend.
        bands: {label: (low [N], high [N])}, shaded around the line of that label.
        styles: {label: line properties of matplotlib}, over the default colour cycle.
        reference: name and value of a reference level, such as the optimum.
        xlabel: label of the x axis.
        ylabel: label of the y axis.

    Raises:
        TypeError: if a curve does not consist of numbers.
        ValueError: if there is no curve, a curve or a band has another length than its x, or a
            label has no x or curve.
    """
    if not curves:
        raise ValueError("curves must hold at least one, got none")
    named = bands or {}
    for label in (*named, *(styles or {})):
        if label not in curves:
            raise ValueError(f"{label!r} has a band or a style, but no curve")
    for number, (label, values) in enumerate(curves.items()):
        if isinstance(x, Mapping) and label not in x:
            raise ValueError(f"x has no entry for the curve {label!r}")
        steps = np.asarray(x[label] if isinstance(x, Mapping) else x, np.float64)
        check_lengths(f"curves[{label!r}]", values, len(steps), "x")
        values = numbers(f"curves[{label!r}]", values)
        style = {"color": COLORS[number % len(COLORS)], "linewidth": 1.6}
        (line,) = ax.plot(steps, values, label=label, **{**style, **(styles or {}).get(label, {})})
        if label in named:
            for edge in named[label]:
                check_lengths(f"bands[{label!r}]", edge, len(steps), "x")
            low, high = named[label]
            ax.fill_between(steps, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    if reference is not None:
        name, level = reference
        ax.axhline(level, color="#666666", linewidth=1.0, linestyle=":", label=name, zorder=1)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,g}")
    ax.legend(frameon=False, fontsize="small", handlelength=2.8)
    quiet(ax)
