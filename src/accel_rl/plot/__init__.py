"""Plots of results, drawn on given Axes from plain arrays and dicts.

Figures that come from a cost model are labelled *modelled* by default.
"""

from accel_rl.plot.breakdown import draw_breakdown
from accel_rl.plot.comparison import Compared, draw_comparison
from accel_rl.plot.curves import draw_curves
from accel_rl.plot.heatmap import draw_heatmap
from accel_rl.plot.latency import draw_latency
from accel_rl.plot.learning import (
    Curve,
    Interval,
    bootstrap,
    draw_learning,
    interquartile_mean,
)
from accel_rl.plot.pareto import draw_pareto
from accel_rl.plot.policy import draw_policy
from accel_rl.plot.roofline import draw_roofline
from accel_rl.plot.sampling import (
    draw_distribution,
    draw_divergence,
    draw_estimates,
    draw_search,
)
from accel_rl.plot.scaling import draw_scaling
from accel_rl.plot.style import COLORS, SAMPLER_COLORS, STYLE
from accel_rl.plot.timeline import draw_timeline

__all__ = [
    "COLORS",
    "SAMPLER_COLORS",
    "STYLE",
    "Compared",
    "Curve",
    "Interval",
    "bootstrap",
    "draw_breakdown",
    "draw_comparison",
    "draw_curves",
    "draw_distribution",
    "draw_divergence",
    "draw_estimates",
    "draw_heatmap",
    "draw_latency",
    "draw_learning",
    "draw_pareto",
    "draw_policy",
    "draw_roofline",
    "draw_scaling",
    "draw_search",
    "draw_timeline",
    "interquartile_mean",
]
