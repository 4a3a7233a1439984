"""Figures composed of the drawings of `accel_rl.plot`, and their files.

Figures are made without pyplot: no display, no global state.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from accel_rl import envs, plot
from accel_rl.cli import table_folder
from accel_rl.envs.registry import has_tables
from accel_rl.io import atomic_write, run_folder
from accel_rl.types import ArrayLike


def save(figure: Figure, path: Path, dpi: int = 120) -> None:
    """Write a figure atomically, in the format of the path: PNG, PDF or SVG."""
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=dpi)


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Make an empty figure, in inches, with constrained layout."""
    figure = Figure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(title)
    return figure


def policy_figure(environment: str, values: ArrayLike, title: str) -> Figure:
    """Draw values [S, A] and greedy policy; for Taxi before and after the pick-up."""
    table = np.asarray(values)
    policy = table.argmax(axis=1)
    layouts = [envs.layout(environment)]
    if environment.startswith("Taxi"):
        layouts = [
            envs.layout(environment, passenger=passenger, destination="G")
            for passenger in ("Y", "taxi")
        ]
    height, width = layouts[0].states.shape
    cell = 1.15 if height * width <= 30 else 0.75
    size = (cell * width + 1.0) * len(layouts), cell * height + 1.2
    figure = new_figure(*size, f"{environment}: value and greedy action\n{title}")
    for ax, layout in zip(
        figure.subplots(1, len(layouts), squeeze=False).flat, layouts, strict=True
    ):
        plot.draw_policy(ax, layout, table, policy)
    return figure


def table_figures(run: Path) -> dict[str, Figure]:
    """Draw a tabular run's modelled time, and learning curve and policy if known, by file name.

    Raises:
      ValueError: if the folder does not hold a complete run.
    """
    run_folder.require_kind(run, "table")
    results = run_folder.read_json(run, run_folder.RESULTS)
    history = run_folder.read_json(run, table_folder.HISTORY)
    table = table_folder.load_table(run)
    environment = results["environment"]
    label = f"{results['rule']}, {results['numerics']}, {results['order']}"
    dpus = f"{results['dpus']:,} DPUs by {results['by']}"
    title = f"Modelled time: {environment}, {dpus}, {results['tasklets']} tasklets"
    found = {"time.png": new_figure(7.2, 1.72, title)}
    plot.draw_breakdown(found["time.png"].subplots(), {label: results["modelled_seconds"]})
    if history["episode_return"] is not None:
        title = f"{environment}: exact return of the greedy policy"
        found["curve.png"] = new_figure(6.4, 4.0, title)
        best = results["optimal_return"]
        plot.draw_curves(
            found["curve.png"].subplots(),
            history["passes"],
            {label: history["episode_return"]},
            reference=None if best is None else ("best possible", best),
        )
    if table.environment is not None and has_tables(table.environment, drawn=True):
        found["policy.png"] = policy_figure(table.environment, table.values, f"{label}, {dpus}")
    return found
