"""Plots of replay sampling: distributions, divergences, estimates, and a search's candidates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from accel_rl.plot.style import COLORS, positive, quiet
from accel_rl.types import ArrayLike

_EXACT = "#c9ced3"
_LEVEL = "#666666"


def draw_distribution(
    ax: Axes,
    edges: ArrayLike,
    exact: ArrayLike,
    sampled: ArrayLike,
    *,
    color: str = COLORS[0],
    labels: tuple[str, str] = ("exact", "sampled"),
    xlabel: str = "priority",
    ylabel: str = "part of the draws",
) -> None:
    """Draw two histograms over the same bins: the exact one filled, the sampled one as a line.

    Args:
        ax: axes to draw on.
        edges: [N + 1], edges of the bins.
        exact: [N], exact height of each bin, finite and 0 or more.
        sampled: [N], sampled height of each bin, likewise.
        color: colour of the line.
        labels: labels of both in the legend.
        xlabel: label of the x axis.
        ylabel: label of the y axis.
    """
    bins = np.asarray(edges, np.float64)
    exact, sampled = positive("exact", exact, zero=True), positive("sampled", sampled, zero=True)
    ax.stairs(exact, bins, fill=True, color=_EXACT, linewidth=0, label=labels[0])
    ax.stairs(sampled, bins, baseline=None, color=color, linewidth=1.3, label=labels[1])
    ax.set_xlim(bins[0], bins[-1])
    ax.set_ylim(bottom=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    quiet(ax, grid=None)


def draw_divergence(
    ax: Axes,
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    levels: Mapping[str, float] | None = None,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    xlabel: str = "groups",
    ylabel: str = "KL divergence, nats",
) -> None:
    """Draw divergences from an exact distribution over a setting, on logarithmic scales.

    Args:
        ax: axes to draw on.
        x: [N] above 0, the setting; each value gets a tick.
        curves: {label: [N]} above 0, in the order of the legend.
        levels: {name: divergence} of samplers without the setting, as dotted lines with the name.
        styles: {label: line properties of matplotlib}, over the default colour cycle.
        xlabel: label of the x axis.
        ylabel: label of the y axis.
    """
    settings = positive("x", x)
    for number, (label, distances) in enumerate(curves.items()):
        style = {"color": COLORS[number % len(COLORS)], "marker": "o", "markersize": 3.5}
        ax.plot(
            settings,
            positive(f"curves[{label!r}]", distances),
            label=label,
            **{**style, "linewidth": 1.6, **(styles or {}).get(label, {})},
        )
    ax.set(xscale="log", yscale="log")
    ax.margins(y=0.1)
    for name, level in (levels or {}).items():
        positive(f"levels[{name!r}]", level)
        ax.axhline(level, color=_LEVEL, linewidth=1.0, linestyle=":", zorder=1)
        ax.annotate(
            name,
            (1, level),
            (0, 2),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color=_LEVEL,
            fontsize="small",
        )
    ax.xaxis.set_major_locator(FixedLocator(settings.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    quiet(ax)


def draw_estimates(
    ax: Axes,
    estimates: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    colors: Mapping[str, str] | None = None,
    xlabel: str = "how often a draw gave it",
    ylabel: str = "probability given with it",
) -> None:
    """Draw estimated probabilities over counted frequencies, with the line of equality.

    Args:
        ax: axes to draw on; both become logarithmic.
        estimates: {label: (frequencies [N], estimates [N])}; pairs with a number that is not
            positive and finite are left out.
        colors: {label: colour}, over the default ones.
        xlabel: label of the x axis.
        ylabel: label of the y axis.
    """
    reach = []
    for number, (label, (frequency, estimate)) in enumerate(estimates.items()):
        pairs = np.asarray([frequency, estimate], np.float64)
        pairs = pairs[:, (np.isfinite(pairs) & (pairs > 0)).all(axis=0)]
        reach += [pairs.ravel()]
        marker = "osD^vP"[number % 6]
        color = (colors or {}).get(label, COLORS[number % len(COLORS)])
        ax.plot(*pairs, marker, color=color, markersize=3.5, alpha=0.75, label=label)
    ends = np.concatenate(reach).min() / 1.3, np.concatenate(reach).max() * 1.3
    ax.plot(ends, ends, color=_LEVEL, linewidth=1.0, linestyle=":", zorder=1)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, xlabel=xlabel, ylabel=ylabel)
    ax.legend(frameon=False, fontsize="small", handlelength=1.0)
    quiet(ax)


def draw_search(
    ax: Axes,
    priorities: ArrayLike,
    members: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    values: ArrayLike | None = None,
    sets: tuple[ArrayLike, ArrayLike] | None = None,
    xlabel: str = "priority",
) -> None:
    """Draw one associative search of a replay buffer: items, queries and candidates.

    Args:
        ax: axes to draw on.
        priorities: [N]; items are drawn in this order from bottom to top.
        members: [N] bool, items that were found.
        groups: [m + 1], borders of the groups of priorities; None for none.
        values: [m], the priority that each group's query asked for.
        sets: (lowest [m], highest [m]), priorities that each query matches, shaded.
        xlabel: label of the x axis.
    """
    place, found = np.asarray([priorities, members], np.float64)  # ValueError if lengths differ
    order = np.argsort(place, kind="stable")
    place, found = place[order], found[order] > 0
    height = np.arange(1, len(place) + 1)
    if groups is not None:
        for border in np.asarray(groups, np.float64):
            ax.axvline(border, color="#dddddd", linewidth=0.8, zorder=0)
    if sets is not None:
        low, high = sets
        for number, (start, end) in enumerate(zip(low, high, strict=True)):
            label = "matched by a query" if number == 0 else None
            ax.axvspan(start, end, color=COLORS[5], alpha=0.3, linewidth=0, label=label, zorder=1)
    ax.plot(place[~found], height[~found], "o", color="#9aa0a6", markersize=2, label="item")
    if found.any():
        ax.plot(
            place[found], height[found], "o", color=COLORS[4], markersize=3.2, label="candidate"
        )
    ax.set_ylim(0, len(place) * 1.08)
    if values is not None:
        drawn = np.asarray(values, np.float64)
        top = np.full(len(drawn), len(place) * 1.05)
        ax.plot(drawn, top, "v", color=COLORS[0], markersize=5, label="representative value")
    ax.set(xlabel=xlabel, ylabel="items, in order")
    ax.legend(edgecolor="none", frameon=True, fontsize="small", loc="lower right", handlelength=1.2)
    quiet(ax, grid=None)
