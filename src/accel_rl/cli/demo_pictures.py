"""Pictures of the demo's findings."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from accel_rl import pim, plot
from accel_rl.cli import pictures
from accel_rl.experiment import swiftrl
from accel_rl.experiment.swiftrl import Findings, Scale, Trained
from accel_rl.experiment.tabular_run import TabularSettings
from accel_rl.io.values import Json

_RULES = {"q_learning": "Q-learning", "sarsa_epsilon_greedy": "SARSA (ε-greedy)"}
_DASHES = {"fp32": "-", "int32_scaled": (0, (4, 2)), "int32_pow2": ":"}
_ORDER_COLORS = dict(zip(swiftrl.ORDERS, plot.COLORS, strict=False))
_MEAN_COLOR, _OWNER_COLOR = plot.COLORS[4], plot.COLORS[5]


def draw(findings: Sequence[Findings], scale: Scale, tasklets: int) -> dict[str, Figure]:
    """Draw all pictures, by file name."""
    figures = {
        "learning_curves.png": _curves(findings, scale),
        "strong_scaling.png": _scaling(findings, tasklets),
        "time_parts.png": _time_parts(findings, scale, tasklets),
        "merge_period.png": _merge_period(findings, scale),
    }
    for found in findings:
        name = found.environment.lower().replace("-", "_")
        first = found.trained[0]
        title = f"{_RULES[first.settings.rule]}, {_label(first)}, {scale.dpus:,} DPUs"
        figures[f"policy_{name}.png"] = pictures.policy_figure(
            found.environment, first.outcome.values, title
        )
    return figures


def _curves(findings: Sequence[Findings], scale: Scale) -> Figure:
    figure = pictures.new_figure(
        10.5,
        3.6 * len(findings),
        f"Exact return of the greedy policy: {scale.transitions:,} transitions on "
        f"{scale.dpus:,} DPUs, merged after every pass",
    )
    panels = figure.subplots(len(findings), len(_RULES), sharex=True, squeeze=False)
    for found, row in zip(findings, panels, strict=True):
        for ax, rule in zip(row, _RULES, strict=True):
            runs = [run for run in found.trained if run.settings.rule == rule]
            runs += [found.mean] if rule == "q_learning" else []
            plot.draw_curves(
                ax,
                runs[0].outcome.passes,
                {_label(run): run.returns for run in runs},
                styles={_label(run): _style(run.settings) for run in runs},
                reference=("best possible", found.optimal),
                xlabel="passes over the data" if found is findings[-1] else "",
                ylabel="return per episode" if ax is row[0] else "",
            )
            ax.set_title(f"{found.environment}, {_RULES[rule]}")
    return figure


def _label(run: Trained) -> str:
    settings = run.settings
    merge = "" if settings.merge == "visits" else f", merge {settings.merge}"
    order = "by owner" if settings.by == "owner" else settings.order
    return f"{order}, {settings.numerics}{merge}"


def _style(settings: TabularSettings) -> dict[str, Json]:
    if settings.merge == "mean":
        return {"color": _MEAN_COLOR, "linewidth": 1.6}
    if settings.by == "owner":
        return {"color": _OWNER_COLOR, "linestyle": _DASHES[settings.numerics], "linewidth": 1.6}
    # Dashes over a wider, paler line keep curves that coincide visible.
    width = 2.6 if settings.numerics == "fp32" else 1.4
    return {
        "color": _ORDER_COLORS[settings.order],
        "linestyle": _DASHES[settings.numerics],
        "linewidth": width,
        "alpha": 0.55 if settings.numerics == "fp32" else 1.0,
    }


def _scaling(findings: Sequence[Findings], tasklets: int) -> Figure:
    sizes = list(findings[0].scaling)
    figure = pictures.new_figure(
        14.0,
        4.1 * len(sizes),
        f"Modelled strong scaling of Q-learning, SEQ, {tasklets} tasklets, merged after every "
        "pass; all parts: with launches and transfers",
    )
    kinds = {
        ("cycles", "time"): "kernel alone, by time",
        ("total", "time"): "all parts, by time",
        ("total", "owner"): "all parts, by owner",
    }
    for row, size in zip(
        figure.subplots(len(sizes), len(kinds), squeeze=False), sizes, strict=True
    ):
        for ax, ((kind, by), name) in zip(row, kinds.items(), strict=True):
            curves, styles = {}, {}
            for found, color in zip(findings, plot.COLORS, strict=False):
                for numerics, seconds in found.scaling[size][by].items():
                    label = f"{found.environment}, {numerics}"
                    curves[label] = seconds[kind]
                    styles[label] = {"color": color, "linestyle": _DASHES[numerics]}
            plot.draw_scaling(ax, swiftrl.SCALING_DPUS, curves, styles=styles)
            ax.set_title(f"{name}, {int(size):,} transitions")
    return figure


def _time_parts(findings: Sequence[Findings], scale: Scale, tasklets: int) -> Figure:
    figure = pictures.new_figure(
        12.0,
        5.4,
        f"Modelled time of {scale.passes} passes over {scale.transitions:,} transitions on "
        f"{scale.dpus:,} DPUs, {tasklets} tasklets, merged after every pass",
    )
    for ax, found in zip(
        figure.subplots(1, len(findings), squeeze=False)[0], findings, strict=True
    ):
        plot.draw_breakdown(
            ax,
            {
                f"{_RULES[run.settings.rule].split()[0]} {_label(run)}": run.record[
                    "modelled_seconds"
                ]
                for run in found.trained
            },
        )
        ax.set_title(found.environment)
    return figure


def _merge_period(findings: Sequence[Findings], scale: Scale) -> Figure:
    found = next(found for found in findings if found.sweep)
    figure = pictures.new_figure(
        6.4,
        4.2,
        f"{found.environment}: return of Q-learning after {scale.sweep_passes} passes over\n"
        f"{scale.sweep_transitions:,} transitions on {scale.sweep_dpus:,} DPUs "
        f"(best possible {found.optimal:.2f})",
    )
    shape = len(pim.MERGES), len(scale.sweep_periods)
    returns = np.reshape([record["episode_return"] for record in found.sweep], shape)
    plot.draw_heatmap(figure.subplots(), returns, pim.MERGES, scale.sweep_periods)
    return figure
