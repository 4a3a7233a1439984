"""Folder of a plan: spec, mapping, estimates and measurements."""

import json
from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accel_rl.cli import runtime
from accel_rl.compose import Mapping, Spec
from accel_rl.compose import mapping as mappings
from accel_rl.compose import spec as specs
from accel_rl.experiment import words as settings_words
from accel_rl.io import atomic_write, run_folder

SPEC, MAPPING, PLAN, RUN = "spec.toml", "mapping.toml", "plan.json", "measured.json"
METRICS = run_folder.METRICS
FILES = {
    SPEC: "the spec that was planned",
    MAPPING: "device of each role; may be edited before compose run",
    PLAN: "estimates of each mapping, and the predicted timeline",
    RUN: "measurements of the last run; written last",
    METRICS: "metrics of the last run",
}
MEASURED = "timeline_measured.png"

Kinds = Table[str, type | tuple[type, ...]]
"""Keys of a JSON table, and the types of their values."""


def read_spec(path: Path, words: Sequence[str]) -> Spec:
    """Read a spec from a TOML file; `name=value` words override its settings.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if a setting is unknown, of the wrong type or out of range.
    """
    table = mappings.read_toml(path)
    for word in words:
        name, text = settings_words.assignment(word)
        place, *inner = name.split(".")
        if len(inner) > 1:
            raise ValueError(f"{name} is no setting of a spec")
        if inner:
            if not isinstance(table.get(place, {}), dict):
                raise ValueError(f"{place} is no table, so it has no {inner[0]}")
            table[place] = {**table.get(place, {}), inner[0]: settings_words.parse(text)}
        else:
            table[name] = settings_words.parse(text)
    return _spec(table)


def read_mapping(directory: Path) -> tuple[Spec, Mapping]:
    """Read a folder's spec and mapping; errors as in `read_spec`."""
    spec = _spec(mappings.read_toml(directory / SPEC))
    return spec, mappings.from_table(mappings.read_toml(directory / MAPPING))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_write(path, "w") as file:
        file.write(text)


def read_json(path: Path) -> dict[str, Any]:
    """Read a table from a JSON file.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if it is not a JSON table; the message names the file.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a table, got {type(found).__name__}")
    return found


def check_keys(path: Path, table: Any, wanted: Kinds, inside: str = "") -> None:
    """Raise ValueError, naming file and key, if a table lacks a key or a value's type is wrong.

    Args:
      path: the table's file.
      table: value to check; not necessarily a table.
      wanted: keys and the types of their values.
      inside: location of the table in the file, such as "estimates[3]".
    """
    if not isinstance(table, dict):
        raise ValueError(f"{path}: {inside} must hold a table, got {type(table).__name__}")
    for name, kind in wanted.items():
        key = f"{inside}.{name}" if inside else name
        if name not in table:
            raise ValueError(f"{path} lacks {key}")
        if not isinstance(table[name], kind):
            raise ValueError(f"{path}: {key} cannot be of type {type(table[name]).__name__}")


def _spec(table: dict[str, Any]) -> Spec:
    try:
        spec = specs.from_table(table)
        runtime.import_gymnax()
        specs.check(spec)
        return spec
    except TypeError as error:  # wrong types come from the user's file here
        raise ValueError(str(error)) from error
