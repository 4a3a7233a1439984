"""Report pages of runs, datasets and benchmarks."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_rl.cli import table_folder
from accel_rl.io import run_folder
from accel_rl.io.values import Json
from accel_rl.report import benchmark, html, results, tabular, training
from accel_rl.report.page import Page, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from accel_rl.report.results import Basis

# Title and basis of a picture by its file's stem; other pictures are titled by their stem.
_DRAWN: dict[str, "tuple[str, Basis | None]"] = {
    "learning_curves": (
        "Learning curves: exact return of the greedy policy by passes over the data, for each "
        "rule, order and numerics",
        "measured",
    ),
    "strong_scaling": ("Strong scaling: speed-up by number of DPUs", "modelled"),
    "time_parts": ("Parts of the time on DPUs, for each run", "modelled"),
    "merge_period": ("Return by how tables are merged and how often", "measured"),
    "policy_frozenlake_v1": ("FrozenLake: state values and greedy actions", "measured"),
    "policy_taxi_v3": ("Taxi: state values and greedy actions", "measured"),
    "time": ("Parts of the time on DPUs", "modelled"),
    "curve": ("Learning curve: exact return of the greedy policy", "measured"),
    "policy": ("State values and greedy actions", "measured"),
    "evaluation": ("Return of greedy episodes by environment steps", "measured"),
    "episode_return": ("Return of episodes while exploring, by environment steps", "measured"),
    "loss": ("Loss by environment steps", "measured"),
    "timeline": ("Timeline of an iteration, as predicted", "modelled"),
    "timeline_measured": ("Timeline of the run, measured beside predicted", None),
    "pareto": ("Mappings by throughput and efficiency, as predicted", "modelled"),
    "roofline": ("Roofline of the steps", None),
}


def page_of(path: Path) -> Page:
    """Make the page of a run's folder, a dataset, a benchmark's JSON file or a folder of those.

    Raises:
      OSError: a file cannot be read.
      ValueError: the path is absent, not of this library, or damaged; the message names it.
    """
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    if path.is_file():
        if path.suffix == ".npz":
            return _dataset(path)
        return benchmark.page_of([results.read(path)], path.name)
    try:
        page = _of_folder(path)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        # Readers check only the keys that identify a run; this reports any other damage.
        raise ValueError(f"{path} holds a damaged run: {type(error).__name__} {error}") from error
    if page is not None:
        return page
    if any(path.glob("*.json")):
        return benchmark.page_of(results.newest(path), str(path))
    raise ValueError(f"{path} is no run's folder and has no benchmark's JSON file")


def _of_folder(path: Path) -> Page | None:
    """Make the page of a run; return None if the folder holds none."""
    make = {
        "plan": _composed,
        "sweep": _sweep,
        "training": _agent,
        "table": _table,
        "demo": _demo,
        "apex": _apex,
    }
    kind = run_folder.kind_of(path)
    return None if kind is None else make[kind](path)


def _table(path: Path) -> Page:
    from accel_rl.cli import plot_table

    config, found = _read(path, run_folder.CONFIG), _read(path, run_folder.RESULTS)
    pictures = _pictures(plot_table.figures(path))
    values = table_folder.load_table(path).values
    return tabular.table(config, found, values, pictures, _when(path))


def _demo(path: Path) -> Page:
    from accel_rl.cli.demo import DETAILS

    records = run_folder.read_json(path, run_folder.RESULTS)
    if not isinstance(records, list):
        raise ValueError(f"{path / run_folder.RESULTS} must hold a list of runs")
    return tabular.demo(
        _read(path, run_folder.CONFIG),
        records,
        _read(path, DETAILS),
        _files(path),
        _when(path),
    )


def _agent(path: Path) -> Page:
    from accel_rl.experiment import folder

    rows = folder.read_rows(path)
    done = _read(path, run_folder.RESULTS) if (path / run_folder.RESULTS).is_file() else None
    pictures = _pictures(_curves(path, rows))
    config = _read(path, run_folder.CONFIG)
    return training.agent(
        config, vars(run_folder.read_manifest(path)), done, rows, pictures, _when(path)
    )


def _sweep(path: Path) -> Page:
    from accel_rl.experiment import configuration, folder, sweep

    groups = sweep.read(path)
    done = _read(path, run_folder.RESULTS) if (path / run_folder.RESULTS).is_file() else None
    config = configuration.to_mapping(groups[0].configuration)
    rows = folder.read_rows(path / groups[0].name)
    pictures = _pictures(_curves(path, rows))
    return training.sweep(config, vars(run_folder.read_manifest(path)), done, pictures, _when(path))


def _curves(path: Path, rows: list[Any]) -> "dict[str, Figure]":
    """Draw learning curves of all metrics that have values; none before the first row."""
    from accel_rl.cli import drawing

    names = {name for row in rows for name in row.get("per_seed", row)}
    found: dict[str, Figure] = {}
    for metric in ("evaluation", "episode_return", "loss"):
        if metric in names:
            found |= drawing.figures([path], metric, 0.95)
    return found


def _apex(path: Path) -> Page:
    import math

    from accel_rl import plot
    from accel_rl.cli import pictures
    from accel_rl.experiment import folder

    rows = folder.read_rows(path)
    figures = {}
    for metric, ylabel in (("episode_return", "return of episodes"), ("loss", "loss")):
        known = [
            (row["steps"], row[metric])
            for row in rows
            if row.get(metric) is not None and math.isfinite(row[metric])
        ]
        if known:
            steps, values = zip(*known, strict=True)
            figure = pictures.new_figure(6.4, 3.6)
            curve = {ylabel: values}
            plot.draw_curves(
                figure.subplots(), steps, curve, xlabel="environment steps", ylabel=ylabel
            )
            figures[f"{metric}.png"] = figure
    config = _read(path, run_folder.CONFIG) if (path / run_folder.CONFIG).is_file() else {}
    if (path / run_folder.RESULTS).is_file():
        results = _read(path, run_folder.RESULTS)
        return training.apex(config, results, _pictures(figures), _when(path))
    by = _read(path, run_folder.MANIFEST)
    return training.apex_so_far(config, by, rows, _pictures(figures), _when(path))


def _composed(path: Path) -> Page:
    from accel_rl.cli.composing import reporting
    from accel_rl.report.page import flat

    found = reporting.read(path)
    config = flat(_read(path, run_folder.CONFIG))
    return training.composed(found["plan"], found["run"], config, _files(path), _when(path))


def _dataset(path: Path) -> Page:
    import dataclasses

    from accel_rl import datasets
    from accel_rl.cli import arguments

    loaded = datasets.load(path)
    info = dataclasses.asdict(loaded.info)
    return tabular.dataset(path.name, arguments.summary(loaded), info, _when(path))


def _read(path: Path, name: str) -> dict[str, Json]:
    found = run_folder.read_json(path, name)
    if not isinstance(found, dict):
        raise ValueError(f"{path / name} must hold a table, got {type(found).__name__}")
    return found


def _pictures(figures: "Mapping[str, Figure]") -> list[Picture]:
    return [_picture(Path(name).stem, html.svg(figure)) for name, figure in figures.items()]


def _files(path: Path) -> list[Picture]:
    found = []
    for file in sorted(path.glob("*.png")):
        try:
            found.append(_picture(file.stem, html.png(file.read_bytes())))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
    return found


def _picture(stem: str, uri: str) -> Picture:
    title, basis = _DRAWN.get(stem, (stem.replace("_", " "), None))
    return Picture(title, f"{title}.", uri, basis)


def _when(path: Path) -> str:
    """Format the modification time of a file, or of the newest JSON file in a folder."""
    files = [path] if path.is_file() else [*path.glob("*.json"), *path.glob("*.jsonl")]
    newest = max(file.stat().st_mtime for file in files)
    when = datetime.datetime.fromtimestamp(newest, datetime.UTC)
    return f"Written on {when:%Y-%m-%d %H:%M} UTC"
