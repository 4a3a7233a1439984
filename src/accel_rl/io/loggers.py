"""What is told of each row of a training: the contract of a logger, and those for a terminal."""

import math
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from accel_rl.arguments import whole

Row = dict[str, Any]


class Logger(Protocol):
    """Takes the rows of one training as they come.

    A row is a dict: `steps` (int), numbers (NaN where there is none), and `per_seed`, a dict of
    lists, where there are several seeds.
    """

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Called once, first.

        Args:
          rows: None if the training starts: nothing that was logged before may be lost. Where it
            is resumed, its rows so far: the log must hold these and no others.

        Raises:
          FileExistsError: if the training starts and the log holds something.
        """

    def log(self, row: Row) -> None:
        """Takes the next row."""

    def close(self) -> None:
        """Called once, last, however the training ended."""


def scalars(row: Row) -> dict[str, float]:
    """A row's numbers without `steps`, those that are not finite left out."""
    return {
        name: value
        for name, value in row.items()
        if name not in ("steps", "per_seed") and math.isfinite(value)
    }


class Console:
    """A line for each row, to stderr."""

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Nothing is kept, so nothing is in the way."""

    def log(self, row: Row) -> None:
        """Prints a row."""
        values = "  ".join(f"{name} {value:.4g}" for name, value in scalars(row).items())
        print(f"{row['steps']:>10}  {values}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is open."""


class ProgressBar:
    """A bar on stderr, with the time left and the last row's numbers."""

    def __init__(self, steps: int, names: Sequence[str] = ("episode_return", "evaluation")):
        """Makes one for a training of `steps` environment steps; `names` are shown beside it.

        Raises:
          TypeError: if `steps` is no int.
          ValueError: if it is below 1.
        """
        whole("steps", steps, 1)
        self._steps, self._names = steps, names
        self._progress: Any = None

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Shows the bar, where a resumed training stands."""
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
        """Moves the bar."""
        known = scalars(row)
        shown = "  ".join(f"{name} {known[name]:.4g}" for name in self._names if name in known)
        self._progress.update(self._task, completed=row["steps"], description=shown)

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self._progress is not None:
            self._progress.stop()
