"""Readers of external logs as columns: CSV, blank-separated text, and plain NPZ."""

import csv
import dataclasses
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accel_rl.arguments import shown
from accel_rl.datasets import DatasetError, text
from accel_rl.datasets.arrays import ENDS, REQUIRED, RowError
from accel_rl.datasets.dataset import COLUMNS
from accel_rl.datasets.storage import DAMAGE

DONE = "done"  # a column that stands for terminated

_HEAD = 1 << 16  # bytes searched for NUL, which text never contains and Parquet and Arrow do

_FLAGS = {"true": "1", "false": "0"}


@dataclasses.dataclass(frozen=True)
class Columns:
    """Columns of a log under the library's names, and the locations of its rows."""

    arrays: dict[str, np.ndarray]
    names: dict[str, str]  # names in the file
    where: Callable[[int], str]  # location of a row, counted from 0, for messages


def is_text(path: Path) -> bool:
    """Return whether a file is blank-separated numbers without header, for `load_text`."""
    if zipfile.is_zipfile(path):
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        fields = next((fields for _, fields in text.data_lines(file)), [])
    return bool(fields) and all(_is_number(field) for field in fields)


def read(path: Path, wanted: Mapping[str, str | None]) -> Columns:
    """Read a log.

    Args:
        path: the file; its kind is detected from its content, not from its name.
        wanted: names of columns in the file, by the library's names. None stands for the same
            name; optional columns that are absent are then skipped.

    Returns:
        The columns.

    Raises:
        DatasetError: the file is empty or damaged, lacks a column, or a field is not a number. The
            message does not name the file.
        OSError: it cannot be opened.
    """
    if zipfile.is_zipfile(path):
        return _read_npz(path, wanted)
    if path.suffix == ".npz":
        raise DatasetError("not an .npz file, or cut short: it has no zip directory")
    with path.open("rb") as file:
        if b"\0" in file.read(_HEAD):
            raise DatasetError(
                "not text, nor an .npz file: write its columns as CSV in UTF-8, or give them to "
                "datasets.from_arrays"
            )
    if is_text(path):
        arrays = text.parse(path)
        names = dict(zip(REQUIRED, REQUIRED, strict=True))
        return Columns(arrays, names, lambda row: f"line {text.line_of(path, row)} (row {row})")
    return _read_csv(path, wanted)


def _chosen(wanted: Mapping[str, str | None], found: Iterable[str]) -> dict[str, str]:
    """Return the names in the file of the wanted columns that are present."""
    found = list(found)
    chosen = {name: given for name, given in wanted.items() if given is not None}
    natural = [(name, name) for name in wanted]
    # Take one column for terminations: terminated, done or discount. discount comes last, as it is
    # often the algorithm's constant, not 0 or 1.
    natural.insert(natural.index(("terminated", "terminated")) + 1, ("terminated", DONE))
    for name, column in natural:
        told = name in chosen or (name == "discount" and "terminated" in chosen)
        told = told or (name == "terminated" and "discount" in chosen)
        if not told and column in found and column not in chosen.values():
            chosen[name] = column
    for name in (*REQUIRED, *chosen):
        column = chosen.get(name, name)
        if column not in found:
            option = name.replace("_", "-")
            raise DatasetError(
                f"no column {shown(column)}, it has {shown(', '.join(found))}; --{option} names "
                f"the column of {name}"
            )
        if found.count(column) > 1:
            raise DatasetError(f"column {shown(column)} is there {found.count(column)} times")
    return chosen


def _read_npz(path: Path, wanted: Mapping[str, str | None]) -> Columns:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if {"header", *COLUMNS} <= set(archive.files):
                raise DatasetError("a dataset that accel_rl wrote: train takes it as it is")
            names = _chosen(wanted, archive.files)
            arrays = {name: archive[column] for name, column in names.items()}
    except DatasetError:
        raise
    except DAMAGE as error:
        raise DatasetError(f"not a readable .npz file ({error})") from error
    return Columns(arrays, names, lambda row: f"row {row}")


def _read_csv(path: Path, wanted: Mapping[str, str | None]) -> Columns:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        start = next((line for line in file if line.strip()), "")
        delimiter = max(",;\t", key=start.count)
        delimiter = delimiter if delimiter in start else " "
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
        try:
            return _of_rows(rows, wanted, delimiter == " ")
        except csv.Error as error:
            raise DatasetError(f"line {rows.line_num}: {error}") from error


def _of_rows(rows: Any, wanted: Mapping[str, str | None], blanks: bool) -> Columns:
    """Build columns from the rows of a `csv.reader`; with `blanks`, ignore empty fields."""
    header: list[str] = []
    names: dict[str, str] = {}
    fields: dict[str, list[str]] = {}
    lines: list[int] = []
    for row in rows:
        row = [field for field in row if field] if blanks else row
        if not any(row):
            continue
        if not header:
            header = [field.strip() for field in row]
            header[0] = header[0].lstrip("# ")  # NumPy writes a header as a comment
            if any(map(_is_number, header)):
                raise DatasetError(
                    f"line {rows.line_num}: no header; the first line must name the columns, such "
                    f"as state,action,reward,next_state,terminated, got {shown(','.join(row))}"
                )
            names = _chosen(wanted, header)
            fields = {name: [] for name in names}
            places = [(fields[name].append, header.index(names[name])) for name in names]
            continue
        if len(row) != len(header):
            raise DatasetError(
                f"line {rows.line_num}: {len(row)} fields, the header has {len(header)}"
            )
        for append, place in places:
            append(row[place])
        lines.append(rows.line_num)
    if not lines:
        raise DatasetError("no rows below the header")

    def where(row: int) -> str:
        return f"line {lines[row]} (row {row})"

    try:
        arrays = {name: _numbers(name, each) for name, each in fields.items()}
    except RowError as error:
        raise DatasetError(f"{where(error.row)}: {error}") from None
    return Columns(arrays, names, where)


def _numbers(name: str, fields: list[str]) -> np.ndarray:
    if name in ENDS:
        fields = [_FLAGS.get(field.strip().lower(), field) for field in fields]
    try:
        return np.array(fields, np.float64)
    except ValueError:
        row = next((row for row, field in enumerate(fields) if not _is_number(field)), 0)
        raise RowError(row, f"{name} is {shown(fields[row])}, must be a number") from None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
