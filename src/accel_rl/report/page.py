"""Content of a page as plain data, which `accel_rl.report.html` renders."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from accel_rl.report.results import Basis

Rows = Sequence[tuple[str, Any]]
"""Names and values, in the order in which they are shown."""

Found = Mapping[str, Any]
"""A JSON file's table, its keys checked by who read it."""


@dataclasses.dataclass(frozen=True)
class PageTable:
    """Rows under headings.

    Attributes:
      title: above it.
      columns: headings.
      rows: cells; shown with `text`.
      basis: what the figures are, for the badge; None where a column tells, or there is none.
      bases: of single columns, by heading.
      numbers: headings of columns that are aligned as numbers.
      folded: whether it is opened on demand.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    basis: Basis | None = None
    bases: Mapping[str, Basis] = dataclasses.field(default_factory=dict)
    numbers: Sequence[str] = ()
    folded: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """A drawing, within the page.

    Attributes:
      title: below it.
      alt: what it shows, for who does not see it.
      uri: a data URI.
      basis: what is drawn; None where the drawing itself tells.
    """

    title: str
    alt: str
    uri: str
    basis: Basis | None = None


@dataclasses.dataclass(frozen=True)
class PageSection:
    """A part of a page under a heading."""

    title: str
    text: str = ""
    facts: Rows = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[PageTable] = ()


@dataclasses.dataclass(frozen=True)
class Page:
    """All of a page.

    Attributes:
      title: of the page.
      kind: what was run, in a few words, such as "benchmark".
      lead: what was run, in a sentence or two.
      when: a date, or a date and a time.
      figures: what matters most: name, value and basis.
      sections: in order.
      settings: the configuration.
      versions: of packages.
      machine: where it ran; empty where that was not recorded.
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


def text(value: Any) -> str:
    """Return a cell: numbers in three or four digits, absent values as a hyphen."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(text, value))
    return str(value)


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:.2e}"


def flat(settings: Mapping[str, Any], inside: str = "") -> list[tuple[str, Any]]:
    """Nested tables as rows of dotted names and values."""
    rows: list[tuple[str, Any]] = []
    for name, value in settings.items():
        key = f"{inside}.{name}" if inside else str(name)
        rows += flat(value, key) if isinstance(value, Mapping) and value else [(key, value)]
    return rows


def made(by: Found) -> dict[str, Rows]:
    """Versions and machine of a page, as far as they were recorded."""
    machine = by.get("host")
    return {
        "versions": list(by.get("versions", {}).items()),
        "machine": flat(machine) if isinstance(machine, Mapping) else [("machine", "not recorded")],
    }
