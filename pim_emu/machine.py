"""Descriptions of modelled machines: sizes, clock, bandwidths and power, each with its source.

A machine is a TOML file under `machines/`. Every constant has a value, a unit, a source and a
status, because a modelled figure is only as good as its constants:

- `measured`: measured by this project (conditions in the remark);
- `published`: read in the public document or source that is named;
- `derived`: computed from other constants (derivation in the remark);
- `remembered`: recalled from the literature but not checked; never to be quoted as published;
- `assumed`: a choice of this model.
"""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pim_emu.arguments import instance

STATUSES = ("measured", "published", "derived", "remembered", "assumed")

_MACHINES = resources.files("pim_emu") / "machines"


@dataclasses.dataclass(frozen=True)
class Constant:
    """Constant of a model, with its unit, source and status.

    Attributes:
      name: as in the file.
      value: in `unit`.
      unit: such as "B/s".
      source: document that states it, or tool that measured it.
      status: one of `STATUSES`.
      remark: conditions of the measurement, or derivation.
    """

    name: str
    value: float
    unit: str
    source: str
    status: str
    remark: str = ""


def _constant(unit: str, *, may_be_zero: bool = False) -> Any:
    return dataclasses.field(metadata={"unit": unit, "may_be_zero": may_be_zero})


@dataclasses.dataclass(frozen=True)
class Machine:
    """Host with UPMEM memory; each field is a constant of the same name in the TOML file.

    Integer fields are counts; the others are rates, times and powers. `sources` has the full
    constants, so that they can be printed beside every modelled figure.

    Attributes:
      name: name of the file, without its suffix.
      sources: constants with unit, source and status, by name.
      ranks: ranks of the host.
      dpus_per_rank: DPUs of a rank.
      max_tasklets: tasklets of a DPU.
      pipeline_reissue: cycles between two instructions of one tasklet.
      pipeline_stages: stages of the pipeline.
      clock_hz: Hz, of a DPU.
      mram_bytes: B, of a DPU.
      wram_bytes: B, of a DPU.
      iram_instructions: instructions that a program may have.
      instruction_bytes: B of an instruction, as the host sends them.
      dma_max_bytes: B of the largest transfer between MRAM and WRAM.
      dma_min_bytes: B of the smallest one.
      dma_alignment_bytes: B; addresses and sizes are multiples of it.
      dma_read_alpha: cycles, the fixed part of a transfer from MRAM to WRAM.
      dma_write_alpha: cycles, the fixed part of one from WRAM to MRAM.
      dma_cycles_per_byte: cycles/B, the rest of either.
      random_read_bandwidth: B/s of the smallest reads by many tasklets.
      wram_bandwidth: B/s.
      to_dpu_bandwidth: B/s from the host to the MRAM of a single DPU.
      from_dpu_bandwidth: B/s in the other direction.
      to_rank_bandwidth: B/s from the host to a whole rank, with a buffer for each DPU.
      from_rank_bandwidth: B/s in the other direction.
      broadcast_bandwidth: B/s from the host, counted in bytes delivered to a whole rank.
      overlapping_ranks: ranks whose transfers run at the same time.
      launch_seconds: s, the overhead of a launch beside its cycles, whatever the number of ranks.
      launch_rank_seconds: s, what each rank that is launched adds to it.
      host_merge_bandwidth: B/s at which the host reads the tables to merge.
      dpu_watts: W of a DPU at work.
      host_watts: W of the host at work.
    """

    name: str
    sources: Mapping[str, Constant] = dataclasses.field(compare=False, repr=False)
    ranks: int = _constant("ranks")
    dpus_per_rank: int = _constant("DPUs")
    max_tasklets: int = _constant("tasklets")
    pipeline_reissue: int = _constant("cycles")
    pipeline_stages: int = _constant("stages")
    clock_hz: float = _constant("Hz")
    mram_bytes: int = _constant("B")
    wram_bytes: int = _constant("B")
    iram_instructions: int = _constant("instructions")
    instruction_bytes: int = _constant("B")
    dma_max_bytes: int = _constant("B")
    dma_min_bytes: int = _constant("B")
    dma_alignment_bytes: int = _constant("B")
    dma_read_alpha: float = _constant("cycles")
    dma_write_alpha: float = _constant("cycles")
    dma_cycles_per_byte: float = _constant("cycles/B")
    random_read_bandwidth: float = _constant("B/s")
    wram_bandwidth: float = _constant("B/s")
    to_dpu_bandwidth: float = _constant("B/s")
    from_dpu_bandwidth: float = _constant("B/s")
    to_rank_bandwidth: float = _constant("B/s")
    from_rank_bandwidth: float = _constant("B/s")
    broadcast_bandwidth: float = _constant("B/s")
    overlapping_ranks: int = _constant("ranks")
    launch_seconds: float = _constant("s", may_be_zero=True)
    launch_rank_seconds: float = _constant("s", may_be_zero=True)
    host_merge_bandwidth: float = _constant("B/s")
    dpu_watts: float = _constant("W")
    host_watts: float = _constant("W")

    @property
    def total_dpus(self) -> int:
        """DPUs in all ranks."""
        return self.ranks * self.dpus_per_rank


def check_machine(machine: Machine) -> None:
    """Raise TypeError unless `machine` is a Machine."""
    instance("machine", machine, Machine, "pim_emu.load_machine makes one")


_FIELDS = {field.name: field for field in dataclasses.fields(Machine) if "unit" in field.metadata}


def available_machines() -> list[str]:
    """Return the names that `load_machine` knows."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _MACHINES.iterdir()
        if entry.name.endswith(".toml")
    )


def load_machine(name: str | Path = "upmem-2560") -> Machine:
    """Load a machine by name, or from a TOML file.

    Args:
      name: one of `available_machines()`, or the path of a TOML file (a `Path`, or a string that
        ends in `.toml`).

    Raises:
      TypeError: if it is neither a name nor a path.
      FileNotFoundError: if the path does not exist.
      ValueError: if the name is unknown, a constant is missing or unknown, a unit or status is
        wrong, or a value is not a positive number.
    """
    instance("name", name, (str, Path), "of a machine, or the path of a file")
    if isinstance(name, Path) or name.endswith(".toml"):
        path = Path(name)
        return parse_machine(path.read_text(encoding="utf-8"), path.stem)
    if name not in available_machines():
        known = ", ".join(available_machines())
        raise ValueError(f"name: unknown machine {name!r}; known: {known}, or a path ending .toml")
    text = (_MACHINES / f"{name}.toml").read_text(encoding="utf-8")
    return parse_machine(text, name)


def parse_machine(text: str, name: str) -> Machine:
    """Parse a machine from the text of a TOML file; `name` becomes its name.

    Raises:
      ValueError: as `load_machine`.
    """
    sources = parse_constants(text, name)
    missing = [field for field in _FIELDS if field not in sources]
    unknown = [constant for constant in sources if constant not in _FIELDS]
    if missing or unknown:
        raise ValueError(f"machine {name!r}: missing constants {missing}, unknown {unknown}")
    values: dict[str, Any] = {}
    for field in _FIELDS.values():
        constant = sources[field.name]
        where = f"machine {name!r}, constant {field.name!r}"
        unit, may_be_zero = field.metadata["unit"], field.metadata["may_be_zero"]
        if constant.unit != unit:
            raise ValueError(f"{where}: unit must be {unit!r}, got {constant.unit!r}")
        if constant.value < 0 or (constant.value == 0 and not may_be_zero):
            raise ValueError(f"{where}: value must be positive, got {constant.value}")
        if field.type is int and constant.value != int(constant.value):
            raise ValueError(f"{where}: value must be a whole number, got {constant.value}")
        values[field.name] = int(constant.value) if field.type is int else float(constant.value)
    return Machine(name=name, sources=sources, **values)


def parse_constants(text: str, where: str) -> dict[str, Constant]:
    """Parse the `[constants.*]` tables of a TOML text, in order.

    Args:
      text: the TOML text.
      where: name of the file, for error messages.

    Raises:
      ValueError: if the text is not TOML or has no constants, a key is missing or unknown, or a
        value is of a wrong type.
    """
    try:
        tables = tomllib.loads(text).get("constants", {})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where!r} is not a TOML file: {error}") from error
    if not isinstance(tables, dict) or not tables:
        raise ValueError(f"{where!r} has no [constants.*] tables")
    return {name: _parse_constant(name, table, where) for name, table in tables.items()}


def _parse_constant(name: str, table: Any, where: str) -> Constant:
    here = f"{where!r}, constant {name!r}"
    required = {"value", "unit", "source", "status"}
    if not isinstance(table, dict):
        raise ValueError(f"{here}: must be a table with {sorted(required)}, got {table!r}")
    if not required <= table.keys() or not table.keys() <= required | {"remark"}:
        raise ValueError(f"{here}: keys must be {sorted(required)} (and remark), got {list(table)}")
    value = table["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{here}: value must be a finite number, got {value!r}")
    for key in ("unit", "source"):
        if not isinstance(table[key], str) or not table[key]:
            raise ValueError(f"{here}: {key} must be a text, got {table[key]!r}")
    if table["status"] not in STATUSES:
        raise ValueError(f"{here}: status must be one of {STATUSES}, got {table['status']!r}")
    return Constant(name=name, **table)


def constants_table(constants: Mapping[str, Constant]) -> str:
    """Return a Markdown table of constants with unit, status, source and remark."""
    lines = [
        "| constant | value | unit | status | source and remark |",
        "| --- | --- | --- | --- | --- |",
    ]
    for constant in constants.values():
        origin = f"{constant.source}. {constant.remark}".rstrip(". ") + "."
        lines.append(
            f"| `{constant.name}` | {constant.value:,.10g} | {constant.unit} "
            f"| {constant.status} | {origin} |"
        )
    return "\n".join(lines)
