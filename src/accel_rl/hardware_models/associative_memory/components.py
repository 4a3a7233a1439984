"""Figures of TCAM arrays and their peripherals, from one data file, each with its source."""

import dataclasses
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, get_args

import pydantic

from accel_rl.arguments import one_of, within

Status = Literal["silicon", "simulated", "tool", "derived", "counted"]
FILE_STATUSES = get_args(Status)

_LOGIC = ("adder", "register", "encoder", "decoder", "interconnect")
_PERIPHERAL_UNITS = {
    **{f"{part}_delay": "ns" for part in _LOGIC},
    **{f"{part}_energy": "pJ" for part in _LOGIC},
    "random_rate": "bit/ns",
    "random_energy": "pJ/bit",
    "buffer_cycle": "ns",
    "buffer_write_energy": "pJ",
    "buffer_read_energy": "pJ",
}
_TCAM_UNITS = {
    "search_delay": "ns",
    "search_cycle": "ns",
    "search_energy": "fJ/bit",
    "write_delay": "ns",
    "write_energy": "fJ/bit",
}
_CLOCKED_UNITS = {
    "clock_period": "ns",
    "search_cycles": "cycle",
    "readout_cycles": "cycle",
    "draw_cycles": "cycle",
    "write_cycles": "cycle",
}
UNITS: Mapping[str, str] = _PERIPHERAL_UNITS | _TCAM_UNITS | _CLOCKED_UNITS


@dataclasses.dataclass(frozen=True)
class Figure:
    """Figure of a component, with its source.

    Attributes:
      name: one of `UNITS`.
      value: in `unit`.
      unit: as in `UNITS`.
      source: authors, title, venue, year and identifier.
      where_read: document that we read, which may be a page that quotes the source.
      status: one of the statuses in the package's docstring.
      condition: technology, size and voltage, as far as stated.
    """

    name: str
    value: float
    unit: str
    source: str
    where_read: str
    status: str
    condition: str = ""


@dataclasses.dataclass(frozen=True)
class Components:
    """Figures of one kind of TCAM array and its peripherals.

    Attributes:
      tcam: name of the kind of array.
      figures: known figures, by name.
    """

    tcam: str
    figures: Mapping[str, Figure]

    @property
    def clocked(self) -> bool:
        """Presence of figures in clock cycles, as for a design in RTL; bool."""
        return "search_cycles" in self.figures

    def __getitem__(self, name: str) -> float:
        """Return the figure's value, in its unit."""
        if name not in self.figures:
            raise ValueError(
                f"{name} ({UNITS[name]}) of {self.tcam!r} has no published value that we found: "
                f"give one by components.given({name}=...), or choose another tcam"
            )
        return self.figures[name].value

    def given(self, *, assumed: bool = False, **values: float) -> "Components":
        """Return the same components with figures from the caller.

        Args:
          assumed: mark the figures as points of an assumed range rather than known.
          **values: positive numbers, by name and in the units of `UNITS`.
        """
        status = "assumed" if assumed else "given"
        figures = dict(self.figures)
        for name, value in values.items():
            one_of("figure", name, UNITS)
            within(name, value, "(0, inf)")
            figures[name] = Figure(name, float(value), UNITS[name], "the caller", "-", status)
        return Components(self.tcam, figures)


def available_tcams(path: Path | None = None) -> tuple[str, ...]:
    """Return the names that `load_components` accepts as `tcam`.

    Args:
      path: a TOML file of figures; None for the file of this package.
    """
    return tuple(_read(path)[1])


def load_components(path: Path | None = None, tcam: str = "fefet_2fefet_45nm") -> Components:
    """Load the figures of a kind of array.

    Args:
      path: a TOML file of figures; None for the file of this package.
      tcam: one of `available_tcams(path)`.

    Raises:
      ValueError: if `tcam` is unknown, or the file has a missing or unknown key, a wrong unit or
        status, a source that is not described or a value that is not positive.
    """
    peripheral, tcams = _read(path)
    one_of("tcam", tcam, tcams)
    return Components(tcam, peripheral | tcams[tcam])


def figures_table(path: Path | None = None) -> str:
    """Return a Markdown table of all figures and sources.

    Args:
      path: a TOML file of figures; None for the file of this package.
    """
    peripheral, tcams = _read(path)
    lines = [
        "| component | figure | value | unit | status | condition | source; where read |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for component, figures in {"all": peripheral, **tcams}.items():
        for figure in figures.values():
            lines.append(
                f"| {component} | `{figure.name}` | {figure.value:.6g} | {figure.unit} "
                f"| {figure.status} | {figure.condition} | {figure.source}; {figure.where_read} |"
            )
    return "\n".join(lines)


class _TomlSource(pydantic.BaseModel, extra="forbid", strict=True):
    cite: Annotated[str, pydantic.Field(min_length=1)]
    where_read: Annotated[str, pydantic.Field(min_length=1)]


class _TomlFigure(pydantic.BaseModel, extra="forbid", strict=True):
    value: Annotated[pydantic.FiniteFloat, pydantic.Field(gt=0)]
    unit: str
    source: str
    status: Status
    condition: str


class _TomlFile(pydantic.BaseModel, extra="forbid", strict=True):
    """Contents of a TOML file of figures."""

    sources: dict[str, _TomlSource]
    peripheral: dict[str, _TomlFigure]
    tcam: dict[str, dict[str, _TomlFigure]]

    def figures(
        self, entries: Mapping[str, _TomlFigure], units: Mapping[str, str]
    ) -> dict[str, Figure]:
        """Return figures with their sources, by name; check names, units and sources."""
        for name, entry in entries.items():
            one_of("figure", name, units)
            one_of(f"unit of {name}", entry.unit, [units[name]])
            one_of(f"source of {name}", entry.source, self.sources)
        return {
            name: Figure(
                name,
                entry.value,
                entry.unit,
                self.sources[entry.source].cite,
                self.sources[entry.source].where_read,
                entry.status,
                entry.condition,
            )
            for name, entry in entries.items()
        }


def _read(path: Path | None) -> tuple[dict[str, Figure], dict[str, dict[str, Figure]]]:
    """Return the figures of peripherals, and those of each TCAM."""
    file = (
        path or resources.files("accel_rl.hardware_models.associative_memory") / "components.toml"
    )
    text = file.read_text(encoding="utf-8")
    try:
        found = _TomlFile.model_validate(tomllib.loads(text))
        units = _TCAM_UNITS | _CLOCKED_UNITS
        return found.figures(found.peripheral, _PERIPHERAL_UNITS), {
            name: found.figures(entries, units) for name, entries in found.tcam.items()
        }
    except ValueError as error:  # of TOML, pydantic or a check
        raise ValueError(f"{file} is not a file of figures: {error}") from error
