"""Benchmark results: the format of the JSON file, and its reader.

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
from typing import Annotated, Literal

import pydantic

from accel_rl.io.validation import validated
from accel_rl.io.values import Json

SCHEMA = "accel_rl.benchmark/1"

Basis = Literal["measured", "modelled"]
Sense = Literal[">=", "<=", "=="]
Place = tuple[str, str, str]
"""Case, system and metric of a record."""

_STRICT = pydantic.ConfigDict(strict=True, allow_inf_nan=False)


def _iso(date: str) -> str:
    datetime.datetime.fromisoformat(date)
    return date


@dataclasses.dataclass(frozen=True)
class BenchmarkRecord:
    """One figure; `spread` holds the quartiles over rounds, None for a single round."""

    __pydantic_config__ = _STRICT

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

    __pydantic_config__ = _STRICT

    claim: str
    value: float | None
    bound: float
    holds: bool | None
    sense: Sense = ">="
    basis: Basis = "measured"
    ours: Place | None = None
    rival: Place | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a verdict without a value."""
        if self.value is None and self.holds is not None:
            raise ValueError("holds must be null without a value")


@dataclasses.dataclass(frozen=True)
class Results:
    """Contents of a results file; the module docstring describes the entries."""

    __pydantic_config__ = _STRICT

    schema: Literal["accel_rl.benchmark/1"]
    source: str  # the file's name
    benchmark: Annotated[str, pydantic.Field(min_length=1)]
    part: str | None
    date: Annotated[str, pydantic.AfterValidator(_iso)]
    commit: str | None
    quick: bool | None
    seeds: str | None
    machine: Mapping[str, Json]
    versions: Mapping[str, str | None]
    load: Mapping[str, list[float]]
    records: tuple[BenchmarkRecord, ...]
    claims: tuple[Claim, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for a claim about records that are absent."""
        places = {None, *(record.place for record in self.records)}
        for number, claim in enumerate(self.claims):
            for name in ("ours", "rival"):
                if getattr(claim, name) not in places:
                    place = getattr(claim, name)
                    raise ValueError(f"claims.{number}.{name} names no record: {place}")

    @property
    def title(self) -> str:
        """Name of the suite, with the part if only a part ran."""
        return self.benchmark if self.part is None else f"{self.benchmark}: {self.part}"

    def find(self, place: Place | None) -> BenchmarkRecord | None:
        """Return the last record of a place, or None."""
        return next((r for r in reversed(self.records) if r.place == place), None)


_RESULTS = pydantic.TypeAdapter(Results)


def read(path: Path) -> Results:
    """Read a results file.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if it is not JSON, or not of this format; the message names file and key.
    """
    try:
        return parse(path.name, json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path} holds no benchmark results: {error}") from error


def parse(source: str, found: Json) -> Results:
    """Convert the JSON value of a file to results.

    Raises:
      ValueError: if it is not of this format; the message names the key.
    """
    if not isinstance(found, dict):
        raise ValueError(f"must hold a table, got {type(found).__name__}")
    results = validated(_RESULTS, {**found, "source": source}, "")
    for kind in ("records", "claims"):
        for number, each in enumerate(found[kind]):
            if "basis" not in each:  # the default would call it measured
                raise ValueError(f"{kind}.{number}.basis is missing")
    return results


def newest(folder: Path) -> list[Results]:
    """Return the newest results of each suite and part in a folder, sorted by suite and part.

    Every JSON file there must hold benchmark results.
    """
    found: dict[tuple[str, str], Results] = {}
    for path in sorted(folder.glob("*.json")):
        each = read(path)
        name = each.benchmark, each.part or ""
        if name not in found or each.date >= found[name].date:
            found[name] = each
    return [found[name] for name in sorted(found)]
