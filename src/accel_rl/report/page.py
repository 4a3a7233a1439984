"""Contents of a report page as plain data; `accel_rl.report.html` renders them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from accel_rl.io.values import Json
from accel_rl.report.results import Basis

Rows = Sequence[tuple[str, Any] | tuple[str, Any, Basis | None]]
"""Names, values and, where there is one, the basis, in the order in which they are shown."""


@dataclasses.dataclass(frozen=True)
class PageTable:
    """Table of a page.

    Attributes:
      title: title above the table.
      columns: headings.
      rows: cells; shown with `text`.
      basis: basis of the figures, for the badge; None if a column has it, or there is none.
      bases: bases of single columns, by heading; a column may have none.
      numbers: headings of columns that are aligned as numbers.
      folded: True if the table is folded until the reader opens it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    basis: Basis | None = None
    bases: Mapping[str, Basis | None] = dataclasses.field(default_factory=dict)
    numbers: Sequence[str] = ()
    folded: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """Picture embedded in a page.

    Attributes:
      title: caption below the picture.
      alt: description of the content, for readers who cannot see it.
      uri: a data URI.
      basis: basis of the figures; None if the picture states it.
    """

    title: str
    alt: str
    uri: str
    basis: Basis | None = None


@dataclasses.dataclass(frozen=True)
class PageSection:
    """Section of a page, with its heading."""

    title: str
    text: str = ""
    facts: Rows = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[PageTable] = ()


@dataclasses.dataclass(frozen=True)
class Page:
    """Whole report page.

    Attributes:
      title: title of the page.
      kind: kind of the run, in a few words, such as "benchmark".
      lead: description of the run, in a sentence or two.
      when: a date, or a date and a time.
      figures: most important figures: name, value and basis.
      sections: sections, in order.
      settings: the configuration.
      versions: versions of packages.
      machine: machine of the run; empty if it was not recorded.
    """

    title: str
    kind: str
    lead: str
    when: str
    figures: Sequence[tuple[str, str, Basis | None]] = ()
    sections: Sequence[PageSection] = ()
    settings: Rows = ()
    versions: Rows = ()
    machine: Rows = ()


def text(value: object) -> str:
    """Format a cell: numbers with three or four digits, absent values as a hyphen."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text(each)}" for name, each in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        known = [each for each in value if isinstance(each, (int, float))]
        if len(value) <= _SHOWN_VALUES or not known:
            return ", ".join(map(text, value))
        return f"{len(value):,} values, {text(min(known))} to {text(max(known))}"
    return str(value)


_SHOWN_VALUES = 8  # of a longer list the extremes are shown


def number(value: float) -> str:
    """Format a number with three digits, or with all digits before the point."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:.2e}"


def flat(settings: Mapping[str, Json], inside: str = "") -> list[tuple[str, Any]]:
    """Flatten nested tables to rows of dotted names and values."""
    rows: list[tuple[str, Any]] = []
    for name, value in settings.items():
        key = f"{inside}.{name}" if inside else str(name)
        rows += flat(value, key) if isinstance(value, Mapping) and value else [(key, value)]
    return rows


def machine_rows(machine: Mapping[str, Json]) -> list[tuple[str, Any]]:
    """Return the machine of a run as rows, with its memory in GiB."""
    return [
        ("memory", f"{value / 2**30:.1f} GiB")
        if name == "memory_bytes"
        else (name.replace("_", " "), value)
        for name, value in flat(machine)
    ]
