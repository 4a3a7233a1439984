"""Folders of runs: names of their files, JSON, and a record of versions and machine."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from accel_rl.io.atomic import atomic_write
from accel_rl.io.machine import describe_machine

CONFIG, METRICS, RESULTS = "config.json", "metrics.jsonl", "results.json"
_PACKAGES = ("jax", "jaxlib", "numpy", "gymnax", "flax", "optax", "matplotlib", "typer", "rich")


def part_of_a_path(name: str) -> str:
    """Make an environment's name a valid part of a path on every system."""
    return name.replace("/", "_").replace(":", "_")


def versions() -> dict[str, str | None]:
    """Return versions of accel_rl, Python and packages that affect results; None if absent."""
    found: dict[str, str | None] = {
        "accel_rl": importlib.metadata.version("accel-rl"),
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def made_with() -> dict[str, Any]:
    """Return versions and the machine, for records."""
    return {"versions": versions(), "host": describe_machine()}


def check_free(directory: Path, overwrite: bool) -> None:
    """Check, before any work, that a run can be written into a folder.

    Raises:
        ValueError: it is a file, cannot be created or written to, or is not empty and `overwrite`
            is False.
    """
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"{directory} is not a directory")
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ValueError(f"{directory} cannot be made: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{directory} cannot be written to: no permission in {there}")
    if not overwrite and directory.is_dir() and any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty; --overwrite replaces what is in it")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    with atomic_write(path, "w") as file:
        json.dump(value, file, indent=2, allow_nan=False)
        file.write("\n")


def read_json(directory: Path, name: str) -> Any:
    """Read one of a run's JSON files.

    Raises:
        ValueError: it is absent or damaged.
    """
    path = directory / name
    if not path.is_file():
        raise ValueError(f"{directory} is not the folder of a complete run: no {name}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error
