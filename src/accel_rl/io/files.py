"""Loggers that write rows to a file: JSON lines, and CSV."""

import csv
import errno
import io
import json
import math
import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any

from accel_rl.io.atomic import atomic_write
from accel_rl.io.loggers import Row


class _Lines:
    """A text file that grows by whole lines. Those that the disk does not take wait for it."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        self._file: int | None = None
        self._waiting = b""
        self._warned = False

    def begin(self, text: str | None) -> None:
        """Opens the file with this text; None: as a new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            with atomic_write(self.path, "w") as file:
                file.write(text)
        elif self.path.exists() and self.path.stat().st_size:
            raise FileExistsError(f"{self.path} holds the log of another training")
        self._waiting, self._warned = b"", False
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def append(self, text: str) -> None:
        self._waiting += text.encode()
        if self._file is None:
            raise ValueError(f"{self.path} is not open")
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, self._waiting) < len(self._waiting):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._file, size)
            if not self._warned:
                warnings.warn(f"{self.path}: {error}; rows wait in memory", stacklevel=4)
            self._warned = True
            return
        self._waiting, self._warned = b"", False

    def close(self) -> None:
        if self._file is None:
            return
        if self._waiting:
            self.append("")
        if self._waiting:
            lost = self._waiting.count(b"\n")
            warnings.warn(f"{self.path}: the last {lost} rows could not be written", stacklevel=3)
        os.close(self._file)
        self._file = None


class JsonLines:
    """A file with a JSON object on each line; a number that is not finite is null.

    Lines are written whole: a reader may meet the beginning of a last one only after a crash.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Names the file; its folder is made if need be."""
        self._lines = _Lines(path)

    def begin(self, rows: Sequence[Row] | None) -> None:
        """See `Logger`."""
        self._lines.begin(None if rows is None else "".join(_json(row) for row in rows))

    def log(self, row: Row) -> None:
        """Appends a line. Where the disk is full it waits for the next, with a warning."""
        self._lines.append(_json(row))

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()


class Csv:
    """A table with a column for each of the rows' numbers, empty where one is not finite.

    What is `per_seed` has no place in it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Names the file; its folder is made if need be."""
        self._lines = _Lines(path)
        self._columns: list[str] = []

    def begin(self, rows: Sequence[Row] | None) -> None:
        """See `Logger`."""
        self._columns = []
        self._lines.begin(None if rows is None else "".join(self._text(row) for row in rows))

    def log(self, row: Row) -> None:
        """Appends a row.

        Raises:
          ValueError: if its columns are not those of the first.
        """
        self._lines.append(self._text(row))

    def close(self) -> None:
        """Closes the file."""
        self._lines.close()

    def _text(self, row: Row) -> str:
        values = {name: value for name, value in row.items() if name != "per_seed"}
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        if not self._columns:
            self._columns = list(values)
            writer.writerow(self._columns)
        if list(values) != self._columns:
            raise ValueError(
                f"{self._lines.path} has columns {self._columns}, got a row of {list(values)}"
            )
        writer.writerow(value if math.isfinite(value) else "" for value in values.values())
        return written.getvalue()


def _json(row: Row) -> str:
    return json.dumps(_finite(row), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
