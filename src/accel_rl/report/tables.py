"""Facts and tables of a run's results, from the keys and values of its JSON files.

Single values become facts and lists of tables become tables. The key of a figure tells its basis:
`modelled_seconds` is modelled.
"""

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import get_args

from accel_rl.io.values import Json
from accel_rl.report.page import PageSection, PageTable, text
from accel_rl.report.results import Basis

Table = Mapping[str, Json]

_FOLDED = 40  # rows of a table from which it is folded
# Keys that are in other sections, or in pictures.
_ELSEWHERE = {"command", "versions", "host", "curves", "modelled_scaling_seconds"}
_SCORES = {"mean", "interquartile_mean", "lowest", "highest"}  # None if the training diverged
_MEASURED = _SCORES | {
    *("episode_return", "evaluation", "evaluation_returns", "per_seed", "loss", "updates"),
    *("seconds", "training_seconds", "wall_seconds", "reward_per_episode"),
    *("max_abs_error", "mean_abs_error"),
}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def section(name: str, found: Table) -> PageSection:
    """Show single values as facts, and lists of tables as tables."""
    title, said = wording()["sections"].get(name, (name.capitalize(), ""))
    parts = list(leaves(found))
    return PageSection(
        title,
        said,
        facts=[fact(key, value) for key, value in parts if not records(value)],
        tables=[table for key, value in parts for table in tables(key, value)],
    )


def leaves(found: Table, inside: str = "") -> Iterator[tuple[str, Json]]:
    """Yield dotted keys and values of nested tables, except tables of like tables."""
    for name, value in found.items():
        if name not in _ELSEWHERE:
            key = f"{inside}.{name}" if inside else name
            if isinstance(value, Mapping) and value and not records(value):
                yield from leaves(value, key)
            elif not isinstance(value, list) or (value and not isinstance(value[0], list)):
                yield key, value


def records(value: Json) -> list[Table]:
    """Return the tables of a list of tables, or of a table of tables; otherwise none."""
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return value
    if isinstance(value, Mapping) and all(
        each and isinstance(each, Mapping) for each in value.values()
    ):
        return [{"name": name, **each} for name, each in value.items()]
    return []


def tables(key: str, value: Json) -> Iterator[PageTable]:
    """Show records as a table, and the records within them as further ones."""
    rows = [dict(leaves(record)) for record in records(value)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    within = [name for name in names if any(records(row.get(name)) for row in rows)]
    plain = [
        name
        for name in names
        if name not in within and any(row.get(name) is not None for row in rows)
    ]
    if plain:
        yield _table(key, rows, wording()["columns"].get(key, plain))
    for name in within:
        outer = [({each: row.get(each) for each in plain}, records(row.get(name))) for row in rows]
        yield from tables(name, [{**row, **each} for row, inner in outer for each in inner])


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


def fact(key: str, value: Json) -> tuple[str, str, Basis | None]:
    """Return the label, the value with its unit, and the basis of a figure."""
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
    return wording()["names"].get(name, plain.replace("_", " "))


@functools.cache
def wording() -> dict[str, Json]:
    """Read `templates/runs.toml`: titles, summaries and names."""
    file = resources.files("accel_rl.report") / "templates" / "runs.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))
