"""Folders of runs: the manifest that tells what they hold, and their JSON files.

Commands begin a folder with its manifest, `run.json`, and read folders by the manifest's kind.
"""

import dataclasses
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic

from accel_rl import __version__
from accel_rl.io.atomic import atomic_write
from accel_rl.io.machine import describe_machine
from accel_rl.io.validation import validated
from accel_rl.io.values import Json

MANIFEST = "run.json"
CONFIG, METRICS, RESULTS = "config.json", "metrics.jsonl", "results.json"
_PACKAGES = ("jax", "jaxlib", "numpy", "gymnax", "flax", "optax", "matplotlib", "typer", "rich")

Kind = Literal["training", "sweep", "table", "demo", "plan", "apex"]
_COMMANDS: dict[str, str] = {
    "training": "accel-rl train AGENT",
    "sweep": "accel-rl sweep",
    "table": "accel-rl train LOG",
    "demo": "accel-rl demo",
    "plan": "accel-rl compose",
    "apex": "accel-rl apex",
}


@dataclasses.dataclass(frozen=True)
class Manifest:
    """Content of `run.json`."""

    __pydantic_config__ = pydantic.ConfigDict(strict=True)

    kind: Kind
    command: str  # command line that began the run
    seeds: tuple[int, ...]
    files: Mapping[str, str]  # names within the folder, folders with a slash, and their contents
    versions: Mapping[str, str | None]  # see `versions`
    host: Mapping[str, Json]  # see `describe_machine`
    resumed: tuple[Mapping[str, Json], ...] = ()  # command, versions and host of each continuation
    schema_version: Literal[1] = 1

    def __post_init__(self) -> None:
        """Raise ValueError for a file outside of the folder: --overwrite removes what is listed."""
        for name in self.files:
            plain = name.removesuffix("/")
            if not plain or plain in (".", "..") or plain != os.path.basename(plain):
                raise ValueError(f"files must be names within the folder, got {name!r}")


_MANIFEST = pydantic.TypeAdapter(Manifest)


def begin_run(
    directory: Path, kind: Kind, command: str, seeds: Sequence[int], files: Mapping[str, str]
) -> None:
    """Write the manifest of a new run into its folder, which is created if absent."""
    directory.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(kind, command, tuple(seeds), files, **made_with())
    write_json(directory / MANIFEST, dataclasses.asdict(manifest))


def continue_run(directory: Path, command: str) -> None:
    """Add a continuation to the manifest of a run."""
    manifest = read_manifest(directory)
    resumed = (*manifest.resumed, {"command": command, **made_with()})
    changed = dataclasses.replace(manifest, resumed=resumed)
    write_json(directory / MANIFEST, dataclasses.asdict(changed))


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a run's folder.

    Raises:
      ValueError: if it is absent or damaged.
    """
    found = read_json(directory, MANIFEST)
    try:
        return validated(_MANIFEST, found, "")
    except ValueError as error:
        raise ValueError(f"{directory / MANIFEST} is damaged: {error}") from error


def kind_of(directory: Path) -> Kind | None:
    """Return the kind of run that a folder holds; None if it is no run's folder."""
    return read_manifest(directory).kind if (directory / MANIFEST).is_file() else None


def require_kind(directory: Path, *kinds: Kind) -> Kind:
    """Return the kind of run that a folder holds."""
    found = read_manifest(directory).kind
    if found not in kinds:
        wanted = " or ".join(_COMMANDS[each] for each in kinds)
        raise ValueError(
            f"{directory} is a run of {_COMMANDS[found]}, not of {wanted}: accel-rl report "
            f"{directory} shows it"
        )
    return found


def part_of_a_path(name: str) -> str:
    """Make an environment's name a valid part of a path on every system."""
    return name.replace("/", "_").replace(":", "_")


def versions() -> dict[str, str | None]:
    """Return versions of accel_rl, Python and packages that affect results; None if absent."""
    found: dict[str, str | None] = {
        "accel_rl": __version__,  # a plain checkout has no metadata
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def made_with() -> dict[str, Json]:
    """Return versions and the machine, for records."""
    return {"versions": versions(), "host": describe_machine()}


def check_free(directory: Path, overwrite: bool) -> None:
    """Check, before any work, that a run can be written into a folder."""
    there = directory.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ValueError(f"{directory} cannot be made: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{directory} cannot be written to: no permission in {there}")
    if not overwrite and directory.is_dir() and any(directory.iterdir()):
        raise ValueError(f"{directory} is not empty; --overwrite replaces what is in it")


def write_json(path: Path, value: object) -> None:
    """Write JSON atomically."""
    with atomic_write(path, "w") as file:
        json.dump(value, file, indent=2, allow_nan=False)
        file.write("\n")


def read_json(directory: Path, name: str) -> Any:
    """Read one of a run's JSON files."""
    path = directory / name
    if not path.is_file():
        raise ValueError(f"{directory} is not the folder of a run: no {name}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a JSON file: {error}") from error
