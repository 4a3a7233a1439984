"""Pictures of `amper_study.py`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from amper_study_draws import (
    AMPER,
    AMPER_K,
    BINS,
    DITHERED,
    EXACT,
    LAWS,
    PER,
    PREFIX,
    UNIFORM,
    Drawn,
    Setting,
    priorities,
)
from matplotlib.figure import Figure

from accel_rl import plot

COLORS = {
    UNIFORM: "#7f7f7f",
    PER: "#000000",
    AMPER_K: plot.COLORS[4],
    EXACT: plot.COLORS[0],
    PREFIX: plot.COLORS[1],
    DITHERED: plot.COLORS[2],
}
STYLES = {
    AMPER_K: {"marker": "s"},
    EXACT: {"linestyle": "--"},
    PREFIX: {"marker": "^"},
    DITHERED: {},
}
TITLES = {law: f"{law} priorities" for law in LAWS}
Results = Mapping[tuple[str, Setting], Drawn]


def draw_all(results: Results, base: Setting, folder: Path) -> Iterator[Path]:
    """Draw what there are results for, at and around the base setting; the files."""
    figures = {
        "distributions": distributions(results, base),
        "over_groups": over(results, base, "groups"),
        "over_ratio": over(results, base, "ratio"),
        "probabilities": probabilities(results, base),
    }
    for name, figure in figures.items():
        path = folder / f"amper_{name}.png"
        with matplotlib.rc_context({"font.size": 9}):
            figure.savefig(path, dpi=130, format="png")
        yield path


def at(base: Setting, system: str, law: str) -> Setting:
    """Return the base setting of a system, with another law."""
    return base._replace(law=law) if system in AMPER else Setting(law, base.size)


def distributions(results: Results, base: Setting) -> Figure:
    """Draw the samples of each system for each law beside those of exact PER."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 9}):
        figure = Figure(figsize=(15, 2.1 * len(LAWS)), layout="constrained")
        grid = figure.subplots(len(LAWS), len(COLORS), sharex="row", sharey="row", squeeze=False)
        for row, law in zip(grid, LAWS, strict=True):
            known = priorities(law, base.size)
            exact = [known.exact[known.bin == b].sum() for b in range(BINS)]
            for ax, system in zip(row, COLORS, strict=True):
                found = results[system, at(base, system, law)]
                plot.draw_distribution(
                    ax, known.edges, exact, found.bins, color=COLORS[system], xlabel="", ylabel=""
                )
                text = f"KL {found.divergence:.4f}"
                above = law != "uniform"
                ax.text(
                    *((0.97, 0.93) if above else (0.04, 0.93)),
                    text,
                    transform=ax.transAxes,
                    ha="right" if above else "left",
                    va="top",
                )
            bulk = np.searchsorted(np.cumsum(exact), 0.99) + 1
            row[0].set_xlim(0, known.edges[min(bulk, BINS)])  # heavy tails are thin
            row[0].set_ylabel(f"{TITLES[law]}\npart of the draws")
        for ax, system in zip(grid[0], COLORS, strict=True):
            ax.set_title(system, fontweight="bold")
        for ax in grid[-1]:
            ax.set_xlabel("priority")
        figure.suptitle(
            f"Priorities of what is drawn (lines), and what exact PER would draw (grey): "
            f"{base.size:,} items, m = {base.groups}, CSP ratio {base.ratio}"
        )
    return figure


def over(results: Results, base: Setting, what: str) -> Figure:
    """Divergence over the number of groups, or over the ratio, one panel for each law."""
    settings = [s for system, s in results if system == EXACT and s.size == base.size]
    if what == "groups":
        x: list[Any] = sorted({s.groups for s in settings if s.ratio == base.ratio})
        points = {value: (value, base.ratio) for value in x}
        xlabel, fixed = "groups m", f"CSP ratio {base.ratio}"
    else:
        x = sorted({s.ratio for s in settings if s.groups == base.groups})
        points = {value: (base.groups, value) for value in x}
        xlabel, fixed = "CSP ratio", f"m = {base.groups}"
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(3.2 * len(LAWS), 3.9), layout="constrained")
        axes = figure.subplots(1, len(LAWS), sharey=True)
        for ax, law in zip(axes, LAWS, strict=True):
            curves = {
                system: [results[system, Setting(law, base.size, *points[v])].divergence for v in x]
                for system in AMPER
            }
            levels = {s: results[s, Setting(law, base.size)].divergence for s in (UNIFORM, PER)}
            styles = {s: {"color": COLORS[s], **STYLES[s]} for s in AMPER}
            plot.draw_divergence(ax, x, curves, levels=levels, styles=styles, xlabel=xlabel)
            ax.set_title(TITLES[law])
        for ax in axes[1:]:
            ax.set_ylabel("")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(AMPER), frameon=False)
        figure.suptitle(f"Distance to exact PER; {base.size:,} items, {fixed}")
    return figure


def probabilities(results: Results, base: Setting) -> Figure:
    """Return the probabilities that come with samples, beside counted ones."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(3.2 * len(LAWS), 3.9), layout="constrained")
        axes = figure.subplots(1, len(LAWS))
        for ax, law in zip(axes, LAWS, strict=True):
            pairs = {}
            for system in (PER, *AMPER):
                found = results[system, at(base, system, law)]
                pairs[system] = (base.size * found.frequency, base.size * found.estimate)
            plot.draw_estimates(
                ax,
                pairs,
                colors=COLORS,
                xlabel="N x how often a draw gave it",
                ylabel="N x probability given",
            )
            ax.set_title(TITLES[law])
        for ax in axes[1:]:
            ax.set_ylabel("")
        figure.suptitle(
            f"`Sample.probabilities` against frequencies, by fiftieths of the {base.size:,} items; "
            f"m = {base.groups}, CSP ratio {base.ratio}"
        )
    return figure
