"""Common style of all plots: a colour-blind safe palette and plain axes."""

from typing import Any, Literal

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes

from accel_rl.types import ArrayLike

# Okabe and Ito's palette, without its yellow, which is too pale for lines on white.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")

# For `matplotlib.rcParams.update`: figures of one's own then look like those of this package.
STYLE: Any = {  # the type that matplotlib gives its keys is not in all of its versions
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "figure.titleweight": "bold",
    "axes.prop_cycle": cycler(color=COLORS),
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}

# Ways to draw from a replay buffer, and the parts of a run's time, keep their colours in every
# picture.
SAMPLER_COLORS = {
    "uniform": "#7f7f7f",
    "prioritised": "#000000",
    "amper_k": COLORS[4],
    "amper_fr": COLORS[0],
}
PART_COLORS = {
    "cpu_to_pim": "#56b4e9",
    "pim_kernel": "#0072b2",
    "inter_pim": "#e69f00",
    "pim_to_cpu": "#cc79a7",
}
PART_LABELS = {
    "cpu_to_pim": "CPU → PIM",
    "pim_kernel": "PIM kernel",
    "inter_pim": "inter-PIM",
    "pim_to_cpu": "PIM → CPU",
}
_INK = "#444444"


def quiet(ax: Axes, grid: Literal["x", "y", "both"] | None = "both") -> None:
    """Reduce axes to two spines and a faint grid, drawn under the data.

    Args:
        ax: the axes.
        grid: "x", "y", "both", or None for no grid.
    """
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(_INK)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color="#dddddd", linewidth=0.7)


def positive(name: str, values: ArrayLike, zero: bool = False) -> np.ndarray:
    """Convert values to float64; raise ValueError unless they are finite and above 0, or 0.

    Matplotlib leaves other values out of a logarithmic axis, or hides them, without a word.
    """
    found = np.asarray(values, np.float64)
    if not (np.isfinite(found) & (found >= 0 if zero else found > 0)).all():
        raise ValueError(f"{name} must be finite and {'0 or more' if zero else 'above 0'}")
    return found
