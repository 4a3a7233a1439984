"""Interface of a logger, and loggers for the terminal."""

import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from accel_rl.arguments import whole
from accel_rl.io.values import Json

Row = dict[str, Json]


class Logger(Protocol):
    """Receiver of the rows of one training run.

    A row is a dict: `steps` (int), metrics (NaN where there is none), and `per_seed`, a dict of
    lists, if there are several seeds.
    """

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Open the log; called once, first.

        Args:
          rows: None at the start of a new run, which must not overwrite an earlier log. If the run
            is resumed, its rows so far; the log must then hold exactly these rows.

        Raises:
          FileExistsError: if the run is new and the log is not empty.
        """

    def log(self, row: Row) -> None:
        """Log the next row."""

    def close(self) -> None:
        """Close the log; called once, last, however training ends."""


def scalars(row: Row) -> dict[str, float]:
    """Return a row's finite metrics, without `steps` and `per_seed`."""
    return {
        name: value
        for name, value in row.items()
        if name not in ("steps", "per_seed") and math.isfinite(value)
    }


class Console:
    """Logger that prints one line for each row to stderr."""

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Do nothing; the terminal keeps no log."""

    def log(self, row: Row) -> None:
        """Print a row."""
        values = "  ".join(f"{name} {value:.4g}" for name, value in scalars(row).items())
        print(f"{row['steps']:>10}  {values}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing; no file is open."""


class ProgressBar:
    """Progress bar on stderr, with the remaining time and the last row's metrics."""

    def __init__(self, steps: int, names: Sequence[str] = ("episode_return", "evaluation")):
        """Set the total number of environment steps and the names of the metrics to show."""
        whole("steps", steps, 1)
        self._steps, self._names = steps, names
        self._progress: Any = None

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Show the bar; a resumed run starts at its present step."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            *(TextColumn("{task.percentage:>3.0f}%"), BarColumn(), TimeRemainingColumn()),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
        )
        done = rows[-1]["steps"] if rows else 0
        self._task = self._progress.add_task("", total=self._steps, completed=done)
        self._progress.start()

    def log(self, row: Row) -> None:
        """Advance the bar."""
        known = scalars(row)
        shown = "  ".join(f"{name} {known[name]:.4g}" for name in self._names if name in known)
        self._progress.update(self._task, completed=row["steps"], description=shown)

    def close(self) -> None:
        """Stop updating the bar, and leave it on the terminal."""
        if self._progress is not None:
            self._progress.stop()
