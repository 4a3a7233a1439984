"""Benchmark results: the format of the JSON file, and a reader that checks every value.

The file is one table; `null` stands for values that are unknown or whose benchmark did not run.

| key | value |
| --- | --- |
| `schema` | `accel_rl.benchmark/1` |
| `benchmark` | name of the suite, that of its file in `benchmarks/` |
| `part` | part of the suite that ran, in words; null: the whole suite |
| `date` | start of the run: an ISO date, or date and time in UTC |
| `commit` | commit of the code, with a + if files differed from it; unknown without git; or null |
| `quick` | true if it ran with `--quick`; or null |
| `seeds` | source of random numbers, in words; or null |
| `machine` | `cpu`, `cores`, `memory_bytes`, `system` and more |
| `versions` | versions of packages and compilers, by name; null if absent |
| `load` | the system's load averages, `before` and `after` |
| `records` | figures: `case`, `system`, `metric`, `unit`, `value`, `spread`, `basis` |
| `claims` | targets: `claim`, `value`, `sense`, `bound`, `holds`, `basis`, `ours`, `rival` |

A record's `spread` holds two quartiles or ends of an interval, or is null; a `basis` is `measured`
or `modelled`. A claim holds if its value is at least (`sense` is `>=`), at most (`<=`) or equal to
(`==`) the bound; `holds` is null if a rival did not run. `ours` and `rival` name the compared
records as [case, system, metric], or are null if the claim compares no records.
"""

import dataclasses
import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from accel_rl.io.values import Json

SCHEMA = "accel_rl.benchmark/1"

Basis = Literal["measured", "modelled"]
Sense = Literal[">=", "<=", "=="]
Place = tuple[str, str, str]
"""Case, system and metric of a record."""

_NUMBER = (int, float)


@dataclasses.dataclass(frozen=True)
class BenchmarkRecord:
    """One figure; `spread` holds the quartiles over rounds, None for a single round."""

    case: str
    system: str
    metric: str
    unit: str
    value: float
    spread: tuple[float, float] | None = None
    basis: Basis = "measured"

    @property
    def place(self) -> Place:
        """Key of the record: case, system and metric."""
        return self.case, self.system, self.metric


@dataclasses.dataclass(frozen=True)
class Claim:
    """Target and its outcome in a run; value and verdict are None without a rival."""

    claim: str
    value: float | None
    bound: float
    holds: bool | None
    sense: Sense = ">="
    basis: Basis = "measured"
    ours: Place | None = None
    rival: Place | None = None


@dataclasses.dataclass(frozen=True)
class Results:
    """Contents of a results file; the module docstring describes the entries."""

    source: str  # the file's name
    benchmark: str
    part: str | None
    date: str
    commit: str | None
    quick: bool | None
    seeds: str | None
    machine: Mapping[str, Json]
    versions: Mapping[str, str | None]
    load: Mapping[str, list[float]]
    records: tuple[BenchmarkRecord, ...]
    claims: tuple[Claim, ...]

    @property
    def title(self) -> str:
        """Name of the suite, with the part if only a part ran."""
        return self.benchmark if self.part is None else f"{self.benchmark}: {self.part}"

    def find(self, place: Place | None) -> BenchmarkRecord | None:
        """Return the last record of a place, or None."""
        return next((r for r in reversed(self.records) if r.place == place), None)


def read(path: Path) -> Results:
    """Read and check a results file.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if it is not JSON, or not of this format; the message names file and key.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from error
    try:
        return parse(path.name, found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse(source: str, found: object) -> Results:
    """Check the JSON value of a file, and convert it to results.

    Raises:
      ValueError: if it is not of this format; the message names the key.
    """
    table = _table(found, "the file")
    if table.get("schema") != SCHEMA:
        raise ValueError(f"schema must be {SCHEMA!r}, got {table.get('schema')!r}")
    benchmark, date = _get(table, "benchmark", str), _get(table, "date", str)
    if not benchmark:
        raise ValueError("benchmark must be a name, got ''")
    try:
        datetime.datetime.fromisoformat(date)
    except ValueError as error:
        raise ValueError(f"date must be an ISO date, got {date!r}") from error
    records = [
        _record(each, f"records[{number}]")
        for number, each in enumerate(_get(table, "records", list))
    ]
    places = {record.place for record in records}
    claims = [
        _claim(each, f"claims[{number}]", places)
        for number, each in enumerate(_get(table, "claims", list))
    ]
    return Results(
        source=source,
        benchmark=benchmark,
        date=date,
        part=_get(table, "part", (str, type(None))),
        commit=_get(table, "commit", (str, type(None))),
        quick=_get(table, "quick", (bool, type(None))),
        seeds=_get(table, "seeds", (str, type(None))),
        machine=_table(_get(table, "machine", dict), "machine"),
        versions=_values(_get(table, "versions", dict), "versions", (str, type(None))),
        load=_values(_get(table, "load", dict), "load", list),
        records=tuple(records),
        claims=tuple(claims),
    )


def _record(found: object, inside: str) -> BenchmarkRecord:
    table = _table(found, inside)
    spread = _get(table, "spread", (list, type(None)), inside)
    if spread is not None:
        if len(spread) != 2 or not all(_is(value, _NUMBER) for value in spread):
            raise ValueError(f"{inside}.spread must be two numbers or null, got {spread!r}")
        spread = (float(spread[0]), float(spread[1]))
    case, system, metric, unit = (
        _get(table, name, str, inside) for name in ("case", "system", "metric", "unit")
    )
    value = float(_get(table, "value", _NUMBER, inside))
    return BenchmarkRecord(
        case, system, metric, unit, value, spread, _one_of(Basis, table, "basis", inside)
    )


def _claim(found: object, inside: str, places: set[Place]) -> Claim:
    table = _table(found, inside)
    value = _get(table, "value", (*_NUMBER, type(None)), inside)
    holds = _get(table, "holds", (bool, type(None)), inside)
    if value is None and holds is not None:
        raise ValueError(f"{inside}.holds must be null without a value, got {holds}")
    return Claim(
        claim=_get(table, "claim", str, inside),
        value=None if value is None else float(value),
        bound=float(_get(table, "bound", _NUMBER, inside)),
        holds=holds,
        sense=_one_of(Sense, table, "sense", inside),
        basis=_one_of(Basis, table, "basis", inside),
        ours=_place(table, "ours", inside, places),
        rival=_place(table, "rival", inside, places),
    )


def _place(table: dict[str, Json], name: str, inside: str, places: set[Place]) -> Place | None:
    found = _get(table, name, (list, type(None)), inside)
    if found is None:
        return None
    if len(found) != 3 or tuple(found) not in places:
        raise ValueError(f"{inside}.{name} names no record: {found!r}")
    return (found[0], found[1], found[2])


def _table(found: object, what: str) -> dict[str, Json]:
    if not isinstance(found, dict):
        raise ValueError(f"{what} must hold a table, got {type(found).__name__}")
    return found


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    """Test a value's type as isinstance does, but do not count a bool as a number."""
    if isinstance(value, bool):
        return kind is bool or (isinstance(kind, tuple) and bool in kind)
    return isinstance(value, kind)


def _get(table: dict[str, Json], name: str, kind: type | tuple[type, ...], inside: str = "") -> Any:
    key = f"{inside}.{name}" if inside else name
    if name not in table:
        raise ValueError(f"{key} is missing")
    if not _is(table[name], kind):
        raise ValueError(f"{key} cannot be of type {type(table[name]).__name__}")
    return table[name]


def _values(table: dict[str, Json], inside: str, kind: type | tuple[type, ...]) -> Any:
    for name in table:
        _get(table, name, kind, inside)
    return table


def _one_of(choices: object, table: dict[str, Json], name: str, inside: str) -> Any:
    value = _get(table, name, str, inside)
    if value not in get_args(choices):
        known = ", ".join(get_args(choices))
        raise ValueError(f"{inside}.{name} must be one of {known}, got {value!r}")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


def newest(folder: Path) -> list[Results]:
    """Return the newest results of each suite and part in a folder, sorted by suite and part.

    Raises:
      OSError: if a file cannot be read.
      ValueError: if a JSON file does not hold benchmark results; the message names it.
    """
    found: dict[tuple[str, str], Results] = {}
    for path in sorted(folder.glob("*.json")):
        each = read(path)
        name = each.benchmark, each.part or ""
        if name not in found or each.date >= found[name].date:
            found[name] = each
    return [found[name] for name in sorted(found)]
