"""Strong scaling: speed-up of the same work on more DPUs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from accel_rl.plot.style import COLORS, check_lengths, quiet
from accel_rl.types import ArrayLike


def draw_scaling(
    ax: Axes,
    dpus: ArrayLike,
    seconds: Mapping[str, Any],
    *,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    what: str = "modelled",
) -> None:
    """Draw speed-up over the smallest number of DPUs on base-2 axes, with the ideal line.

    The legend has each curve's last value, because curves near the ideal overlap.

    Args:
        ax: axes to draw on.
        dpus: [N] numbers of DPUs, ascending.
        seconds: {label: [N] seconds}; a curve is relative to its own first value.
        styles: {label: line properties of matplotlib}, over the default colour cycle.
        what: origin of the seconds, for the axis label.

    Raises:
        ValueError: if a curve's length is not N, a time is not positive, or `dpus` do not ascend.
    """
    counts = np.asarray(dpus, np.float64)
    if counts.ndim != 1 or len(counts) < 2 or not (np.diff(counts) > 0).all() or counts[0] <= 0:
        raise ValueError(f"dpus must be two or more ascending positive numbers, got {dpus}")
    ax.plot(
        counts, counts / counts[0], color="#888888", linestyle="--", linewidth=1.2, label="ideal"
    )
    lowest = 1.0
    for number, (label, values) in enumerate(seconds.items()):
        check_lengths(f"seconds[{label!r}]", values, len(counts), "dpus")
        times = np.asarray(values, np.float64)
        if not (times > 0).all():
            raise ValueError(f"seconds[{label!r}] must be positive, got {times.min():g}")
        speedups = times[0] / times
        lowest = min(lowest, float(speedups.min()))
        style = {
            "color": COLORS[number % len(COLORS)],
            "marker": "o",
            "markersize": 3.5,
            "linewidth": 1.6,
        }
        name = f"{label}: {speedups[-1]:.1f}x"
        ax.plot(counts, speedups, label=name, **{**style, **(styles or {}).get(label, {})})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    _plain_ticks(ax.xaxis, counts)
    powers = np.arange(np.floor(np.log2(lowest)), np.ceil(np.log2(counts[-1] / counts[0])) + 1)
    _plain_ticks(ax.yaxis, 2.0**powers)
    ax.set(xlabel="DPUs", ylabel=f"{what} speed-up over {counts[0]:,.0f} DPUs")
    ax.legend(frameon=False, fontsize="small", handlelength=3.5)
    quiet(ax)


def _plain_ticks(axis: Any, values: np.ndarray) -> None:
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
