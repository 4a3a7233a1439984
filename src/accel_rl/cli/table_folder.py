"""Folder of a tabular run: configuration, tables, history and results."""

import dataclasses
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from accel_rl.io import atomic_write
from accel_rl.io.run_folder import CONFIG, RESULTS, begin_run, require_kind, write_json
from accel_rl.io.values import Json

if TYPE_CHECKING:
    from accel_rl.experiment.tabular_run import Outcome

TABLE, HISTORY = "table.npz", "history.json"
FILES = {
    CONFIG: "every argument, and the dataset with its checksum",
    TABLE: "tables [K, S, A] as trained, values [S, A] float32, and a JSON header",
    HISTORY: "return of the greedy policy at each merge",
    RESULTS: "final figures; written last, so its presence shows that the run is complete",
}
_FORMAT = "accel_rl.table"


@dataclasses.dataclass(frozen=True, eq=False)
class SavedTable:
    """Action values of `table.npz`, with their environment."""

    values: np.ndarray  # [S, A] float32
    environment: str | None  # name, if known


def write(
    directory: Path,
    command: str,
    config: Mapping[str, Json],
    outcome: "Outcome",
    environment: str | None,
    results: Mapping[str, Json],
) -> None:
    """Write a run's folder.

    Args:
        directory: created if absent.
        command: the command line, for records.
        config: the content of `config.json`.
        outcome: from `tabular_run.train`.
        environment: name of the table's environment, if known.
        results: the content of `results.json`.

    Raises:
        OSError: a file cannot be written.
    """
    (directory / RESULTS).unlink(missing_ok=True)
    begin_run(directory, "table", command, [config["settings"]["seed"]], FILES)
    write_json(directory / CONFIG, config)
    header = json.dumps({"format": _FORMAT, "environment": environment}).encode()
    with atomic_write(directory / TABLE) as file:
        np.savez(
            file,
            allow_pickle=False,
            header=np.frombuffer(header, np.uint8),
            tables=outcome.tables,
            values=outcome.values,
        )
    returns = None if outcome.returns is None else outcome.returns.tolist()
    history = {"passes": outcome.passes.tolist(), "episode_return": returns}
    write_json(directory / HISTORY, history)
    write_json(directory / RESULTS, results)


def load_table(path: Path) -> SavedTable:
    """Read a run's table.

    Args:
        path: the run's folder, or its table file.

    Raises:
        ValueError: the file is absent, damaged, or was not written by `write`.
    """
    if path.is_dir():
        require_kind(path, "table")
    file = path / TABLE if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"{file} does not exist")
    try:
        if not zipfile.is_zipfile(file):
            raise zipfile.BadZipFile("no .npz file, or cut short")
        with np.load(file, allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            values = archive["values"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{file} is not a table that accel_rl wrote ({error})") from error
    if header.get("format") != _FORMAT:
        raise ValueError(f"{file}: its format is {header.get('format')!r}, must be {_FORMAT!r}")
    if values.dtype != np.float32 or values.ndim != 2 or not np.isfinite(values).all():
        raise ValueError(
            f"{file}: values must be finite float32 [S, A], got {values.dtype} {values.shape}"
        )
    return SavedTable(values, header.get("environment"))
