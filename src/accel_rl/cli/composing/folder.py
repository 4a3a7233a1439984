"""Folder of a plan: configuration, mapping, estimates and measurements."""

import json
from collections.abc import Mapping as Table
from collections.abc import Sequence
from pathlib import Path

from accel_rl import experiment
from accel_rl.cli import runtime
from accel_rl.compose import Mapping
from accel_rl.compose import mapping as mappings
from accel_rl.experiment import Experiment
from accel_rl.io import atomic_write, run_folder
from accel_rl.io.values import Json

MAPPING, PLAN, RUN = "mapping.toml", "plan.json", "measured.json"
METRICS = run_folder.METRICS
FILES = {
    run_folder.CONFIG: "the configuration that was planned",
    MAPPING: "device of each role; may be edited before compose run",
    PLAN: "estimates of each mapping, and the predicted timeline",
    RUN: "measurements of the last run; written last",
    METRICS: "metrics of the last run",
}
MEASURED = "timeline_measured.png"

Kinds = Table[str, type | tuple[type, ...]]
"""Keys of a JSON table, and the types of their values."""


def load(path: Path, words: Sequence[str] = ()) -> Experiment:
    """Load the experiment of a configuration file; words like compose.weight=0.5 override it.

    Raises:
      OSError: if the file cannot be read.
      ValueError: if a setting is unknown, of the wrong type or out of range.
    """
    runtime.import_gymnax()
    return experiment.load(path, words=words, command="compose")


def read_mapping(directory: Path) -> tuple[Experiment, Mapping]:
    """Read a folder's experiment and mapping; errors as in `load`."""
    planned = load(directory / run_folder.CONFIG)
    return planned, mappings.from_table(mappings.read_toml(directory / MAPPING))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_write(path, "w") as file:
        file.write(text)


def read_json(path: Path) -> dict[str, Json]:
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


def check_keys(path: Path, table: object, wanted: Kinds, inside: str = "") -> None:
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
