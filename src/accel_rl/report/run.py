"""Report page of a run's folder, built from its files whatever kind of run they are of.

The manifest and `config.json` give settings, machine and versions. In every other JSON file, single
values become facts and lists of tables become tables. `metrics.jsonl` gives learning curves, and
PNG files are embedded. The key of a figure tells its basis: `modelled_seconds` is modelled. Titles,
summaries and names are in `templates/runs.toml`.
"""

import functools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from accel_rl import plot
from accel_rl.io import run_folder
from accel_rl.io.values import Json
from accel_rl.report import html
from accel_rl.report.page import (
    Page,
    PageSection,
    PageTable,
    Picture,
    machine_rows,
    text,
)
from accel_rl.report.results import Basis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = Mapping[str, Json]

_FOLDED = 40  # rows of a table from which it is folded
_SETTINGS = (run_folder.MANIFEST, run_folder.CONFIG, "sweep.json")
# Keys that are in other sections, or in pictures.
_ELSEWHERE = {"command", "versions", "host", "curves", "modelled_scaling_seconds"}
_SCORES = {"mean", "interquartile_mean", "lowest", "highest"}  # None if the training diverged
_MEASURED = _SCORES | {
    *("episode_return", "evaluation", "evaluation_returns", "per_seed", "loss", "updates"),
    *("seconds", "training_seconds", "wall_seconds", "reward_per_episode"),
    *("max_abs_error", "mean_abs_error"),
}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


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
    words = _words()[manifest.kind]
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
    data = [table for key, value in config.items() for table in _tables(key, value)]
    if data:
        sections.append(PageSection("Data", tables=data))
    plain = [(key, value) for key, value in _leaves(config) if not _records(value)]
    return Page(
        title=html.fill(words["title"], **fields),
        kind=words["kind"],
        lead=html.fill(words["lead"], **fields),
        when=when,
        figures=[
            (heading, *_fact(key, value)[1:])
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


def section(name: str, found: Table) -> PageSection:
    """Show single values as facts, and lists of tables as tables."""
    title, said = _words()["sections"].get(name, (name.capitalize(), ""))
    parts = list(_leaves(found))
    return PageSection(
        title,
        said,
        facts=[_fact(key, value) for key, value in parts if not _records(value)],
        tables=[table for key, value in parts for table in _tables(key, value)],
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
    if _records(found):
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


def _leaves(found: Table, inside: str = "") -> Iterator[tuple[str, Json]]:
    """Yield dotted keys and values of nested tables, except tables of like tables."""
    for name, value in found.items():
        if name not in _ELSEWHERE:
            key = f"{inside}.{name}" if inside else name
            if isinstance(value, Mapping) and value and not _records(value):
                yield from _leaves(value, key)
            elif not isinstance(value, list) or (value and not isinstance(value[0], list)):
                yield key, value


def _records(value: Json) -> list[Table]:
    """Return the tables of a list of tables, or of a table of tables; otherwise none."""
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return value
    if isinstance(value, Mapping) and all(
        each and isinstance(each, Mapping) for each in value.values()
    ):
        return [{"name": name, **each} for name, each in value.items()]
    return []


def _tables(key: str, value: Json) -> Iterator[PageTable]:
    """Show records as a table, and the records within them as further ones."""
    rows = [dict(_leaves(record)) for record in _records(value)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    within = [name for name in names if any(_records(row.get(name)) for row in rows)]
    plain = [
        name
        for name in names
        if name not in within and any(row.get(name) is not None for row in rows)
    ]
    if plain:
        yield _table(key, rows, _words()["columns"].get(key, plain))
    for name in within:
        outer = [({each: row.get(each) for each in plain}, _records(row.get(name))) for row in rows]
        yield from _tables(name, [{**row, **each} for row, inner in outer for each in inner])


def _table(key: str, rows: Sequence[Table], names: Sequence[str]) -> PageTable:
    columns = {name: [row.get(name) for row in rows] for name in names}
    title = f"{_label(key)} ({len(rows):,})"
    for name in names:
        first, *others = columns[name]
        if len(rows) > 2 and others == [first] * len(others) and _is_setting(name, first):
            title += f", {_label(name)} {text(first)}"
            del columns[name]
    # One unit for all durations, so that they can be compared.
    durations = [value for name in columns if "seconds" in name for value in columns[name]]
    units = {name: _unit(name, durations) for name in columns}
    headings = {name: ", ".join(filter(None, (_label(name), units[name][1]))) for name in columns}
    # A column may tell the basis of each row; keys then tell only what is modelled.
    told = any(value in get_args(Basis) for values in columns.values() for value in values)
    bases = {headings[name]: _basis(name, values) for name, values in columns.items()}
    shown = [
        [_shown(name, value, units[name][0]) for value in values]
        for name, values in columns.items()
    ]
    return PageTable(
        title[:1].upper() + title[1:],
        list(headings.values()),
        list(zip(*shown, strict=True)),
        bases={name: basis for name, basis in bases.items() if basis == "modelled" or not told},
        numbers=[
            headings[name] for name, values in columns.items() if any(map(_is_number, values))
        ],
        folded=len(rows) > _FOLDED,
    )


def _fact(key: str, value: Json) -> tuple[str, str, Basis | None]:
    if "seconds" in key and isinstance(value, Mapping):
        value = sum(value.values())
    scale, unit = _unit(key, [value])
    shown = f"{text(_shown(key, value, scale))} {unit}" if value is not None else "-"
    return _label(key), shown.rstrip(), _basis(key, [value])


def _shown(key: str, value: Json, scale: float) -> Json:
    if key.rpartition(".")[2] in _SCORES:
        return "diverged" if value is None else f"{value:,.4g}"
    return value / scale if scale != 1 and _is_number(value) else value


def _unit(key: str, values: Sequence[Json]) -> tuple[float, str]:
    """Choose the unit of quantities by their key and the largest of them."""
    if "joules" in key:
        return 1.0, "J"
    if "seconds" not in key or "/" in key:
        return 1.0, ""
    largest = max((abs(value) for value in values if _is_number(value)), default=0)
    return next((unit for unit in _UNITS if largest >= unit[0]), _UNITS[-1])


def _basis(key: str, values: Sequence[Json]) -> Basis | None:
    if not any(_is_number(value) or isinstance(value, list) for value in values):
        return None
    if "modelled" in key or "predicted" in key or key == "stretch":
        return "modelled"
    return "measured" if "measured" in key or re.split(r"[./]", key)[-1] in _MEASURED else None


def _is_setting(key: str, value: object) -> bool:
    return _is_number(value) and _basis(key, [value]) is None


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _label(key: str) -> str:
    name = key.rpartition(".")[2]
    plain = key.removeprefix("settings.").replace("_seconds", "").replace("modelled_", "")
    return _words()["names"].get(name, plain.replace("_", " "))


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
        title, *basis = _words()["pictures"].get(stem, [stem.replace("_", " ")])
        pictures.append(Picture(title, f"{title}.", uri, *basis))
    return pictures


@functools.cache
def _words() -> dict[str, Json]:
    file = resources.files("accel_rl.report") / "templates" / "runs.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))
