"""Report page of a run's folder, built from its files whatever kind of run they are of.

The manifest and `config.json` give settings, machine and versions. Every other JSON file becomes
facts and tables, `metrics.jsonl` gives learning curves, and PNG files are embedded.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from accel_rl import plot
from accel_rl.io import run_folder
from accel_rl.io.values import Json
from accel_rl.report import html
from accel_rl.report.page import Page, PageSection, Picture, machine_rows
from accel_rl.report.tables import Table, fact, leaves, records, section, tables, wording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SETTINGS = (run_folder.MANIFEST, run_folder.CONFIG, "sweep.json")


def page_of(
    folder: Path,
    when: str,
    rows: Sequence[Table] = (),
    drawn: "Mapping[str, Figure] | None" = None,
    more: Sequence[PageSection] = (),
) -> Page:
    """Build the page of a run's folder.

    Args:
      folder: folder with a manifest.
      when: date of the page.
      rows: rows of `metrics.jsonl`.
      drawn: pictures by file name, in place of files of these names.
      more: sections to put after the pictures.

    Raises:
      OSError: if a file cannot be read.
      ValueError: if a file is damaged.
    """
    manifest = run_folder.read_manifest(folder)
    words = wording()[manifest.kind]
    config, files = _config(folder), _results(folder)
    results: dict[str, Json] = {}
    for found in reversed(files.values()):
        results |= found
    fields = {
        "config": config,
        "results": results,
        "done": (folder / words.get("results", run_folder.RESULTS)).is_file(),
        "recorded": rows[-1]["steps"] if rows else 0,
    }
    drawn = drawn or {}
    pictures = _pictures(folder, {**_curves(rows, drawn), **drawn})
    sections = [PageSection("Pictures", pictures=pictures)] if pictures else []
    sections += [*more, *(section(stem, found) for stem, found in files.items())]
    if rows:
        last = {name: value for name, value in rows[-1].items() if name != "per_seed"}
        sections.append(section("last_row", last))
    data = [table for key, value in config.items() for table in tables(key, value)]
    if data:
        sections.append(PageSection("Data", tables=data))
    plain = [(key, value) for key, value in leaves(config) if not records(value)]
    return Page(
        title=html.fill(words["title"], **fields),
        kind=words["kind"],
        lead=html.fill(words["lead"], **fields),
        when=when,
        figures=[
            (heading, *fact(key, value)[1:])
            for heading, key in words["figures"].items()
            if (value := _at({**config, **results}, key)) is not None
        ],
        sections=sections,
        settings=[
            ("command", manifest.command),
            *((key.removeprefix("settings."), value) for key, value in plain),
        ],
        versions=list(manifest.versions.items()),
        machine=machine_rows(manifest.host),
    )


def _config(folder: Path) -> Table:
    """Read the configuration; that of a sweep is its first group's."""
    for path in (folder / run_folder.CONFIG, *sorted(folder.glob(f"*/{run_folder.CONFIG}"))):
        if path.is_file():
            return _read(path)
    return {}


def _results(folder: Path) -> dict[str, Table]:
    """Read the JSON files besides settings, by stem; `results.json` comes first."""
    paths = [path for path in sorted(folder.glob("*.json")) if path.name not in _SETTINGS]
    paths.sort(key=lambda path: path.name != run_folder.RESULTS)
    return {path.stem: _read(path) for path in paths}


def _read(path: Path) -> Table:
    found = run_folder.read_json(path.parent, path.name)
    if isinstance(found, Mapping):
        return found
    if records(found):
        return {path.stem: found}
    raise ValueError(f"{path} must hold a table or a list of tables")


def _at(found: Json, key: str) -> Json:
    """Find a value by its dotted key; `a/b` is a ratio, and None is absent.

    Of a list of tables, `first` is one, `best` the one that says so, and `only` the one of one.
    """
    if "/" in key:
        over, under = (_at(found, part) for part in key.split("/"))
        return over / under if over and under else None
    for part in key.split("."):
        if isinstance(found, list):
            best = next((each for each in found if each.get("best")), None)
            only = found[0] if len(found) == 1 else None
            found = {"first": found[0], "best": best, "only": only}
        found = None if found is None else found.get(part)
    return len(found) if isinstance(found, list) else found


def _curves(rows: Sequence[Table], drawn: "Mapping[str, Figure]") -> "dict[str, Figure]":
    """Draw the metrics of a single training against its steps, but for those drawn already."""
    from matplotlib.figure import Figure

    found = {}
    for metric in ("evaluation", "episode_return", "loss"):
        known = [
            (row["steps"], row[metric])
            for row in rows
            if row.get(metric) is not None and math.isfinite(row[metric])
        ]
        if known and f"{metric}.png" not in drawn:
            steps, values = zip(*known, strict=True)
            label = metric.replace("_", " ")
            figure = Figure(figsize=(6.4, 3.6), layout="constrained")
            plot.draw_curves(
                figure.subplots(), steps, {label: values}, xlabel="environment steps", ylabel=label
            )
            found[f"{metric}.png"] = figure
    return found


def _pictures(folder: Path, drawn: "Mapping[str, Figure]") -> list[Picture]:
    """Take drawn pictures, and PNG files of other names."""
    uris = {Path(name).stem: html.svg(figure) for name, figure in drawn.items()}
    for path in sorted(folder.glob("*.png")):
        if path.stem not in uris:
            uris[path.stem] = html.png(path)
    pictures = []
    for stem, uri in uris.items():
        title, *basis = wording()["pictures"].get(stem, [stem.replace("_", " ")])
        pictures.append(Picture(title, f"{title}.", uri, *basis))
    return pictures
