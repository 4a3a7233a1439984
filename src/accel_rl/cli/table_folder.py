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
    from accel_rl.experiment.tabular_run import Outcome, TabularSettings
    from accel_rl.types import MDP

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
    """Write the folder of a run, with the contents of its `config.json` and `results.json`."""
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


def results_of(
    environment: str,
    settings: "TabularSettings",
    outcome: "Outcome",
    seconds: dict[str, float],
    mdp: "MDP | None",
) -> dict[str, Json]:
    """Collect the results of a run; returns are None without the environment's tables."""
    from accel_rl import tabular
    from accel_rl.experiment import tabular_run

    final = None if outcome.returns is None else float(outcome.returns[-1])
    best = None if mdp is None else float(tabular.optimal_return(mdp, tabular_run.horizon_of(mdp)))
    return {
        **tabular_run.record(environment, settings, final, seconds),
        "optimal_return": best,
        "horizon": None if mdp is None else tabular_run.horizon_of(mdp),
        "tasklets": settings.tasklets,
        "effective": outcome.effective,
        "measured_seconds": round(outcome.measured_seconds, 3),
    }


def load_table(path: Path) -> SavedTable:
    """Read the table of a run from its folder or file.

    Raises:
        ValueError: the file is absent, damaged, or was not written by `write`.
    """
    if path.is_dir():
        require_kind(path, "table")
    file = path / TABLE if path.is_dir() else path
    try:
        if not zipfile.is_zipfile(file):
            raise zipfile.BadZipFile("absent, no .npz file, or cut short")
        with np.load(file, allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            values = archive["values"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{file} is not a table that accel_rl wrote ({error})") from error
    sound = values.dtype == np.float32 and values.ndim == 2 and np.isfinite(values).all()
    if header.get("format") != _FORMAT or not sound:
        raise ValueError(f"{file} must hold finite float32 values [S, A] of format {_FORMAT!r}")
    return SavedTable(values, header.get("environment"))
