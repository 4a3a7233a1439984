"""Learning curves over seeds: inter-quartile means and bootstrap intervals.

Source: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice",
NeurIPS 2021.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from accel_rl.arguments import within
from accel_rl.plot.style import COLORS, quiet
from accel_rl.types import ArrayLike

_TRIM = 0.25  # of the values, left out at either end
_BLOCK = 4_000_000  # resampled numbers held at once


class Interval(NamedTuple):
    """Confidence interval; arrays of the statistic's shape."""

    low: np.ndarray
    high: np.ndarray


class Curve(NamedTuple):
    """Learning curve of several seeds."""

    steps: ArrayLike  # [N], when the policy was scored
    scores: ArrayLike  # [R, N], of R seeds; NaN where a seed has none, as no episode ended


def without_gaps(curve: Curve, *, keep: bool = True) -> Curve:
    """Return the points of a curve at which every seed has a score.

    Points before every seed has one are left out, as are those at which no seed has one.

    Args:
      curve: of which some scores are NaN.
      keep: a seed without a score keeps its last one; if False, its point is left out.
    """
    scores = np.asarray(curve.scores, np.float64)
    if scores.ndim != 2 or scores.shape[1:] != np.shape(curve.steps):
        raise ValueError(
            f"scores must have shape [R, N] of N steps, got {scores.shape} and "
            f"{np.shape(curve.steps)}"
        )
    known = np.isfinite(scores)
    last = np.maximum.accumulate(np.where(known, np.arange(scores.shape[1]), 0), axis=1)
    kept = np.take_along_axis(scores, last, axis=1) if keep else scores
    chosen = known.any(axis=0) & np.isfinite(kept).all(axis=0)
    return Curve(np.asarray(curve.steps)[chosen], kept[:, chosen])


def interquartile_mean(scores: ArrayLike, axis: int = 0) -> np.ndarray:
    """Return the mean of the middle half; floor(n / 4) values are left out at each end.

    With fewer than four values it is the plain mean.

    Args:
      scores: array of finite numbers.
      axis: axis to reduce.

    Returns:
      float64, the shape of `scores` without the axis.
    """
    values = np.moveaxis(_finite(scores), axis, -1)
    number = values.shape[-1]
    cut = int(_TRIM * number)
    if cut:
        # The values between the cuts, in whatever order.
        values = np.partition(values, (cut, number - cut - 1), axis=-1)[..., cut : number - cut]
    return np.asarray(values.mean(axis=-1))


def bootstrap(
    groups: Sequence[ArrayLike],
    statistic: Callable[..., object] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Compute a percentile interval by the stratified bootstrap over runs.

    Runs are resampled with replacement within their groups (strata). A run is drawn whole, with all
    its N scores.

    Args:
      groups: G arrays [R_g, N] or [R_g] of scores: the runs of a task, or of a method.
      statistic: maps resampled groups, G arrays [K, R_g, N] or [K, R_g] for K resamples, to [K, N]
        or [K]; if None, the inter-quartile mean of all groups' runs together. For a difference of
        two methods: `lambda a, b: interquartile_mean(a, 1) - interquartile_mean(b, 1)`.
      confidence: share of the resamples that lie in the interval, in (0, 1).
      resamples: number of resamples; the statistic gets them in blocks of K.
      seed: seed of the resampling.
    """
    arrays = [_finite(group) for group in groups]
    if len({array.shape[1:] for array in arrays}) != 1 or arrays[0].ndim > 2:
        shapes = [array.shape for array in arrays]
        raise ValueError(f"groups must be arrays [R, N] of the same N, or [R], got shapes {shapes}")
    of = _pooled if statistic is None else statistic
    rng = np.random.default_rng(seed)
    at_once = max(1, _BLOCK // sum(array.size for array in arrays))
    found = []
    for first in range(0, resamples, at_once):
        number = min(at_once, resamples - first)
        drawn = [
            array[rng.integers(len(array), size=(number, len(array)), dtype=np.int64)]
            for array in arrays
        ]
        found.append(np.asarray(of(*drawn)))
    within("confidence", confidence, "(0, 1)")
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(found), (tail, 1 - tail), axis=0)
    return Interval(low, high)


def draw_curves(
    ax: Axes,
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
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
    """
    named = bands or {}
    for label in (*named, *(styles or {})):
        if label not in curves:
            raise ValueError(f"{label!r} has a band or a style, but no curve")
    for number, (label, values) in enumerate(curves.items()):
        steps = np.asarray(x[label] if isinstance(x, Mapping) else x, np.float64)
        values = np.asarray(values, np.float64)
        style = {"color": COLORS[number % len(COLORS)], "linewidth": 1.6}
        (line,) = ax.plot(steps, values, label=label, **{**style, **(styles or {}).get(label, {})})
        if label in named:
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


def draw_learning(
    ax: Axes,
    curves: Mapping[str, Curve],
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    per_seed: bool = False,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
    reference: tuple[str, float] | None = None,
    xlabel: str = "environment steps",
    ylabel: str = "return per episode",
) -> None:
    """Draw each curve's inter-quartile mean over seeds, with its bootstrap interval.

    Args:
      ax: axes to draw on.
      curves: {label: Curve} in the order of the legend, which adds the number of seeds. Where a
        score is NaN, `without_gaps` of the curve is drawn.
      confidence: confidence of the intervals; a curve of one seed has no interval.
      resamples: resamples of the bootstrap.
      per_seed: draw each seed's scores too, as thin lines.
      styles: {label: line properties of matplotlib}, over the default colour cycle.
      reference: name and value of a reference level.
      xlabel: label of the x axis.
      ylabel: label of the y axis.
    """
    steps, means, bands, looks = {}, {}, {}, dict(styles or {})
    drawn = [without_gaps(curve) for curve in curves.values()]
    present = len(ax.lines)
    for label, curve in zip(curves, drawn, strict=True):
        scores = curve.scores
        if not scores.size:
            raise ValueError(f"{label!r} has no point at which every seed has a score")
        seeds = len(scores)
        shown = f"{label} ({seeds} seed{'s' if seeds > 1 else ''})"
        steps[shown], means[shown] = curve.steps, interquartile_mean(scores)
        if seeds > 1:
            bands[shown] = bootstrap([scores], confidence=confidence, resamples=resamples)
        if label in looks:
            looks[shown] = looks.pop(label)
    draw_curves(
        ax,
        steps,
        means,
        bands=bands,
        styles=looks,
        reference=reference,
        xlabel=xlabel,
        ylabel=ylabel,
    )
    if per_seed:
        means_drawn = ax.lines[present : present + len(drawn)]
        for line, curve in zip(means_drawn, drawn, strict=True):
            color = line.get_color()
            ax.plot(curve.steps, curve.scores.T, color=color, linewidth=0.6, alpha=0.5, zorder=1)


def _pooled(*groups: np.ndarray) -> np.ndarray:
    return interquartile_mean(np.concatenate(groups, axis=1), axis=1)


def _finite(scores: ArrayLike) -> np.ndarray:
    values = np.asarray(scores, np.float64)
    if values.size == 0 or not np.isfinite(values).all():  # sorting would trim NaN with the largest
        raise ValueError("scores must be one finite value or more")
    return values
