"""Performance of mappings: roofline, Pareto front, and speed-up on more DPUs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from accel_rl.plot.style import COLORS, positive, quiet
from accel_rl.types import ArrayLike


def draw_roofline(
    ax: Axes,
    points: Mapping[str, tuple[float, float]],
    *,
    peak_flops: float,
    bandwidth: float,
    title: str = "",
) -> None:
    """Draw performance over arithmetic intensity, below the roof of compute and memory.

    Args:
        ax: axes to draw on; both become logarithmic.
        points: {step: (FLOP per byte, FLOP per second)}; steps without FLOP are left out.
        peak_flops: FLOP per second.
        bandwidth: bytes per second.
        title: title of the chart.
    """
    shown = {name: each for name, each in points.items() if min(each) > 0}
    ridge = peak_flops / bandwidth
    low = min(*(x for x, _ in shown.values()), ridge) / 4
    high = max(*(x for x, _ in shown.values()), ridge) * 4
    x = np.geomspace(low, high, 200)
    ax.loglog(x, np.minimum(peak_flops, x * bandwidth) / 1e9, color="0.3")
    for (name, (intensity, flops)), color in zip(shown.items(), COLORS * 2, strict=False):
        ax.loglog([intensity], [flops / 1e9], "o", color=color, label=name)
    ax.set_xlabel("FLOP per byte")
    ax.set_ylabel("GFLOP per second")
    ax.set_title(title)
    ax.legend(frameon=False)
    quiet(ax)


def draw_pareto(
    ax: Axes,
    points: Mapping[str, tuple[float, float]],
    front: Mapping[str, tuple[float, float]],
    *,
    what: str = "declared watts",
    title: str = "",
) -> None:
    """Draw mappings by throughput and efficiency, with the Pareto front as a line.

    Args:
        ax: axes to draw on.
        points: {mapping: (samples per second, samples per joule)}.
        front: the points that are not dominated.
        what: origin of the joules, for the axis label.
        title: title of the chart.
    """
    ax.plot(*np.array(list(points.values())).T, "o", color="0.7", label="mappings")
    line = np.array(sorted(front.values()))
    ax.plot(line[:, 0], line[:, 1], "o-", color=COLORS[0], label="Pareto front")
    for name, place in front.items():
        ax.annotate(name, place, (4, 4), textcoords="offset points", fontsize="x-small")
    ax.set_xlabel("trained samples per second")
    ax.set_ylabel(f"trained samples per joule ({what})")
    ax.set_title(title)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:,g}")
    ax.margins(0.15)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    quiet(ax)


def draw_scaling(
    ax: Axes,
    dpus: ArrayLike,
    seconds: Mapping[str, ArrayLike],
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
    """
    counts = positive("dpus", dpus)
    if not (np.diff(counts) > 0).all():
        raise ValueError(f"dpus must ascend, got {dpus}")
    ax.plot(
        counts, counts / counts[0], color="#888888", linestyle="--", linewidth=1.2, label="ideal"
    )
    lowest = 1.0
    for number, (label, values) in enumerate(seconds.items()):
        times = positive(f"seconds[{label!r}]", values)
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
