"""Plots of results, drawn on given Axes from plain arrays and dicts.

Figures that come from a cost model are labelled *modelled* by default.
"""

from accel_rl.plot import aggregates
from accel_rl.plot.comparison import Compared, draw_comparison
from accel_rl.plot.episode import draw_grid_state, draw_observation
from accel_rl.plot.heatmap import draw_heatmap
from accel_rl.plot.learning import (
    Curve,
    Interval,
    bootstrap,
    draw_curves,
    draw_learning,
    interquartile_mean,
    without_gaps,
)
from accel_rl.plot.performance import draw_pareto, draw_roofline, draw_scaling
from accel_rl.plot.policy import draw_policy
from accel_rl.plot.sampling import (
    draw_distribution,
    draw_divergence,
    draw_estimates,
    draw_search,
)
from accel_rl.plot.style import COLORS, SAMPLER_COLORS, STYLE
from accel_rl.plot.times import draw_breakdown, draw_latency, draw_timeline

__all__ = [
    "COLORS",
    "SAMPLER_COLORS",
    "STYLE",
    "Compared",
    "Curve",
    "Interval",
    "aggregates",
    "bootstrap",
    "draw_breakdown",
    "draw_comparison",
    "draw_curves",
    "draw_distribution",
    "draw_divergence",
    "draw_estimates",
    "draw_grid_state",
    "draw_heatmap",
    "draw_latency",
    "draw_learning",
    "draw_observation",
    "draw_pareto",
    "draw_policy",
    "draw_roofline",
    "draw_scaling",
    "draw_search",
    "draw_timeline",
    "interquartile_mean",
    "without_gaps",
]
