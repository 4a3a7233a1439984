"""Loggers that write metrics to JSON Lines and CSV files."""

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
    """Append-only text file of whole lines; lines that a full disk refuses wait in memory."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        self._file: int | None = None
        self._waiting = b""
        self._warned = False

    def begin(self, text: str | None) -> None:
        """Open the file with the given text; None: as a new file."""
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
        assert self._file is not None, f"{self.path} is not open"
        size = os.fstat(self._file).st_size
        # One write takes all waiting lines; a partial write is undone, so lines stay whole.
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
    """Logger with one JSON object on each line; NaN and infinity become null.

    Lines are written whole. Only a crash can leave an incomplete last line.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Set the path of the file; `begin` creates its folder if needed."""
        self._lines = _Lines(path)

    def begin(self, rows: Sequence[Row] | None) -> None:
        """See `Logger`."""
        self._lines.begin(None if rows is None else "".join(_json(row) for row in rows))

    def log(self, row: Row) -> None:
        """Append a line; on a full disk, warn and retry with the next line."""
        self._lines.append(_json(row))

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class Csv:
    """Logger with one CSV column for each metric; NaN and infinity become empty cells.

    `per_seed` is not written.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Set the path of the file; `begin` creates its folder if needed."""
        self._lines = _Lines(path)
        self._columns: list[str] = []

    def begin(self, rows: Sequence[Row] | None) -> None:
        """See `Logger`."""
        self._columns = []
        self._lines.begin(None if rows is None else "".join(self._text(row) for row in rows))

    def log(self, row: Row) -> None:
        """Append a row."""
        self._lines.append(self._text(row))

    def close(self) -> None:
        """Close the file."""
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


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
