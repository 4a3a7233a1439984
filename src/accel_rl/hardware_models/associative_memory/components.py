"""Figures of TCAM arrays and their peripherals, from one data file, each with its source."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from accel_rl.arguments import within

FILE_STATUSES = ("silicon", "simulated", "tool", "derived", "counted")

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
        """Return the figure's value, in its unit.

        Raises:
          ValueError: if the name is unknown, or the figure has no value.
        """
        if name not in UNITS:
            raise ValueError(f"name: no figure {name!r}; there are {', '.join(UNITS)}")
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

        Raises:
          ValueError: if a name is unknown, or a value is not positive and finite.
        """
        status = "assumed" if assumed else "given"
        figures = dict(self.figures)
        for name, value in values.items():
            if name not in UNITS:
                raise ValueError(f"{name}: no such figure; there are {', '.join(UNITS)}")
            within(name, value, "(0, inf)")
            figures[name] = Figure(name, float(value), UNITS[name], "the caller", "-", status)
        return Components(self.tcam, figures)


def available_tcams(path: Path | None = None) -> tuple[str, ...]:
    """Return the names that `load_components` accepts as `tcam`; errors are as for it.

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
      TypeError: if `path` is no `Path`.
      FileNotFoundError: if `path` does not exist.
      ValueError: if `tcam` is unknown, or the file has a missing or unknown key, a wrong unit or
        status, a source that is not described or a value that is not positive.
    """
    peripheral, tcams = _read(path)
    if tcam not in tcams:
        raise ValueError(f"tcam must be one of {', '.join(tcams)}, got {tcam!r}")
    return Components(tcam, peripheral | tcams[tcam])


def figures_table(path: Path | None = None) -> str:
    """Return a Markdown table of all figures and sources; errors are as for `load_components`.

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


def _read(path: Path | None) -> tuple[dict[str, Figure], dict[str, dict[str, Figure]]]:
    file = (
        path or resources.files("accel_rl.hardware_models.associative_memory") / "components.toml"
    )
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file} is not a TOML file: {error}") from error
    if set(tables) != {"sources", "peripheral", "tcam"}:
        raise ValueError(f"{file} must have sources, peripheral and tcam, got {sorted(tables)}")
    sources = tables["sources"]
    for name, source in sources.items():
        if set(source) != {"cite", "where_read"} or not all(source.values()):
            raise ValueError(f"{file}, source {name!r}: wants cite and where_read, got {source}")

    def parse(group: str, table: Any, units: Mapping[str, str]) -> dict[str, Figure]:
        return {
            name: _figure(f"{file}, {group}.{name}", name, keys, units, sources)
            for name, keys in table.items()
        }

    peripheral = parse("peripheral", tables["peripheral"], _PERIPHERAL_UNITS)
    tcams = {
        name: parse(name, table, _TCAM_UNITS | _CLOCKED_UNITS)
        for name, table in tables["tcam"].items()
    }
    return peripheral, tcams


def _figure(
    where: str, name: str, keys: dict[str, Any], units: Mapping[str, str], sources: dict[str, Any]
) -> Figure:
    wanted = {"value", "unit", "source", "status", "condition"}
    if name not in units:
        raise ValueError(f"{where}: no such figure; there are {', '.join(units)}")
    if set(keys) != wanted:
        raise ValueError(f"{where}: keys must be {sorted(wanted)}, got {sorted(keys)}")
    value = keys["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{where}: value must be positive and finite, got {value!r}")
    if keys["unit"] != units[name]:
        raise ValueError(f"{where}: unit must be {units[name]!r}, got {keys['unit']!r}")
    if keys["status"] not in FILE_STATUSES:
        raise ValueError(f"{where}: status must be one of {FILE_STATUSES}, got {keys['status']!r}")
    if keys["source"] not in sources:
        raise ValueError(f"{where}: source {keys['source']!r} is not among {sorted(sources)}")
    origin = sources[keys["source"]]
    return Figure(
        name,
        value,
        keys["unit"],
        origin["cite"],
        origin["where_read"],
        keys["status"],
        keys["condition"],
    )
