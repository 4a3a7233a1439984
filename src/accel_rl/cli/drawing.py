"""Learning curves of trainings and sweeps, and their labels."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from accel_rl import plot
from accel_rl.cli import pictures
from accel_rl.experiment import configuration, folder, training, words
from accel_rl.experiment import sweep as sweeps
from accel_rl.io.loggers import Row
from accel_rl.io.run_folder import kind_of
from accel_rl.io.values import Json
from accel_rl.plot import Curve

# Settings that do not change what is learned, or only by chance; labels omit them.
_ASIDE = ("training.seed", "training.seeds", "training.strategy", "training.log", "training.period")
_MOST = 3  # most settings in a label
_COMMON = ("steps", "seconds")  # metrics with one value for all seeds


class NoValues(ValueError):
    """Error of a metric that no run has for all of its seeds."""


class _Drawn(NamedTuple):
    """Curve with the run, environment and settings it belongs to."""

    path: Path
    environment: str
    settings: dict[str, Json]  # by dotted name
    curve: Curve


def figures(
    runs: Sequence[Path],
    metric: str,
    confidence: float,
    *,
    per_seed: bool = False,
    title: str | None = None,
) -> dict[str, Figure]:
    """Draw the curves of runs in one figure, with a panel for each environment.

    Args:
      runs: folders of trainings or sweeps.
      metric: an entry of `metrics.jsonl`.
      confidence: level of the bootstrap intervals over seeds.
      per_seed: draw a line for each seed, too.
      title: of the figure, over those of its panels.

    Raises:
      NoValues: if a run lacks the metric, or no run has a value for all seeds.
      ValueError: if `confidence` is out of range.
    """
    found = [_curves(run, metric) for run in runs]
    drawn = [each for curves, _ in found for each in curves]
    without = [each for _, names in found for each in names]
    if not drawn:
        of = f"there is no value of {metric} for all seeds of {', '.join(without)}"
        raise NoValues(f"{of}{_instead(runs, metric)}")
    for each in without:
        warnings.warn(
            f"{each} is not drawn: it has no value of {metric} for all seeds", stacklevel=2
        )
    labels = _labels(drawn)
    environments = list(dict.fromkeys(each.environment for each in drawn))
    figure = pictures.new_figure(6.4 * len(environments), 4.2, title or "")
    parts = figure.subplots(1, len(environments), squeeze=False).flat
    for ax, environment in zip(parts, environments, strict=True):
        curves = {
            label: each.curve
            for label, each in zip(labels, drawn, strict=True)
            if each.environment == environment
        }
        shown = metric.replace("_", " ")
        ylabel = _YLABELS.get(metric, shown)
        plot.draw_learning(ax, curves, confidence=confidence, per_seed=per_seed, ylabel=ylabel)
        share = f"{100 * confidence:g} % bootstrap interval"
        ax.set_title(f"{environment}: inter-quartile mean, {share}", fontsize="medium")
    return {f"{metric}.png": figure}


_YLABELS = {
    "evaluation": "return of greedy episodes",
    "episode_return": "return of episodes while exploring",
}


def _curves(run: Path, metric: str) -> tuple[list[_Drawn], list[str]]:
    """Return curves of all combinations of a training or a sweep, and names of those without."""
    sweep = kind_of(run) == "sweep"
    inside = [run / group.name for group in sweeps.read(run)] if sweep else [run]
    found, without = [], []
    for path in inside:
        if sweep and kind_of(path) is None:  # the sweep was stopped before this group
            without.append(str(path))
            continue
        complete, rows = folder.read(path), folder.read_rows(path)
        there = [name for name in _of_seeds(rows) if name not in _COMMON]
        if metric not in there:
            known = ", ".join(there) or "nothing yet"
            raise NoValues(f"{path} has no metric {metric!r} of each seed; there is {known}")
        flat = _flat(configuration.to_mapping(complete))
        for number, settings in enumerate(complete.combinations()):
            curve = _curve(complete, rows, metric, number)
            if curve is None:
                which = f" with {words.assignments(settings)}" if settings else ""
                without.append(f"{path}{which}")
                continue
            name = path if not settings else path / str(number)
            found.append(_Drawn(name, complete.environment.name, {**flat, **settings}, curve))
    return found, without


def _instead(runs: Sequence[Path], metric: str) -> str:
    """Suggest another metric: a run that was stopped early has episodes, but no evaluation."""
    other = "episode_return"
    if metric == other or not any(_curves(run, other)[0] for run in runs):
        return ""
    return f"; --metric {other} draws what there is"


def _of_seeds(rows: Sequence[Row]) -> Mapping[str, Json]:
    """Return the per-seed metrics of the first row; with one seed, all of its metrics."""
    return rows[0].get("per_seed", rows[0]) if rows else {}


def _curve(
    complete: configuration.Configuration, rows: Sequence[Row], metric: str, number: int
) -> Curve | None:
    """Return a combination's curve: steps [points] and scores [seeds, points]; None if empty.

    Evaluations are not carried forward: a seed that lacks one where others have it has diverged,
    and the curve ends there.
    """
    scores = [training.per_combination(complete, row, metric)[number] for row in rows]
    steps = [row["steps"] for row in rows]
    keep = metric != "evaluation"
    curve = plot.without_gaps(Curve(np.array(steps), np.array(scores).T), keep=keep)
    return curve if len(curve.steps) else None


def _labels(drawn: Sequence[_Drawn]) -> list[str]:
    """Label each curve by the settings in which curves differ, or by its folder."""
    if len(drawn) == 1:
        return [f"{drawn[0].settings['agent.name']}, {drawn[0].settings['replay.sampler']} replay"]
    differ = [
        name
        for name in drawn[0].settings
        if all(name in each.settings for each in drawn)  # others depend on the sampler or agent
        and name not in _ASIDE
        and not name.startswith(("evaluation.", "checkpoints.", "sweep.", "environment.name"))
        and len({str(each.settings.get(name)) for each in drawn}) > 1
    ]
    labels = [
        ", ".join(f"{name.rpartition('.')[2]} {words.text(each.settings[name])}" for name in differ)
        for each in drawn
    ]
    if not differ or len(differ) > _MOST:
        return [str(each.path) for each in drawn]
    within = [(each.environment, label) for each, label in zip(drawn, labels, strict=True)]
    return [
        f"{label}, {each.path}" if within.count((each.environment, label)) > 1 else label
        for each, label in zip(drawn, labels, strict=True)
    ]


def _flat(tables: Mapping[str, Json]) -> dict[str, Json]:
    return {
        f"{section}.{name}": value
        for section, table in tables.items()
        for name, value in table.items()
    }
