"""Storage of datasets as `.npz` files of the columns and a JSON header with checksums."""

import io
import json
import os
import struct
import zipfile
import zlib
from typing import Annotated, Any, Literal

import jax.numpy as jnp
import numpy as np
import pydantic

from accel_rl.datasets.dataset import (
    COLUMNS,
    FORMAT_VERSION,
    DatasetError,
    DatasetInfo,
    TabularDataset,
    columns,
    validate,
)
from accel_rl.io import atomic_write
from accel_rl.io.validation import decoded
from accel_rl.types import TabularTransition

FORMAT = "accel_rl.tabular_dataset"

_HEADER_LIMIT = 1 << 20  # bytes; a header has about 500
_NPY_HEADER_LIMIT = 4096  # bytes before a column's values; NumPy writes 128
_LOCAL_HEADER = 30  # bytes before the name and the extra field of a zip member
_LOCAL_LENGTHS = 26  # bytes before their two lengths
_IMPORT = "; `accel-rl import`, or datasets.from_arrays, takes a log of your own"
# Exceptions that zipfile and NumPy raise for damaged files.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,  # a member is absent
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
    OverflowError,
)


class _Header(pydantic.BaseModel):
    """Header of a file; fields of later versions are ignored."""

    model_config = pydantic.ConfigDict(strict=True)

    format: Literal["accel_rl.tabular_dataset"]
    format_version: Annotated[int, pydantic.Field(ge=1)]
    accel_rl_version: str
    environment: str
    num_states: int
    num_actions: int
    policy: str
    seed: int | None
    dropped: int
    missing_next_action: int
    rows: Annotated[int, pydantic.Field(ge=1)]
    crc32: dict[str, int]


_HEADER = pydantic.TypeAdapter(_Header)


def save(path: str | os.PathLike[str], dataset: TabularDataset) -> None:
    """Write a dataset as an uncompressed `.npz`, atomically.

    NumPy alone can read the file: the columns are arrays, and `header` holds UTF-8 JSON as uint8.
    The same dataset yields the same bytes. If the write fails or is killed, an older file is
    unchanged.

    Args:
        path: the file, by convention ending in `.npz`; no suffix is appended.
        dataset: the dataset; it is validated first.

    Raises:
        OSError: the file cannot be written.
    """
    validate(dataset)
    info = dataset.info
    table = {
        name: np.ascontiguousarray(column, COLUMNS[name].newbyteorder("<"))
        for name, column in columns(dataset).items()
    }
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "accel_rl_version": info.version,
        "environment": info.environment,
        "num_states": info.num_states,
        "num_actions": info.num_actions,
        "policy": info.policy,
        "seed": info.seed,
        "dropped": info.dropped,
        "missing_next_action": info.missing_next_action,
        "rows": len(dataset),
        "crc32": {name: zlib.crc32(column.data) for name, column in table.items()},
    }
    encoded = np.frombuffer(json.dumps(header, indent=1).encode(), np.uint8)
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, header=encoded, **table)


def load(path: str | os.PathLike[str], *, mapped: bool = False) -> TabularDataset:
    """Read a dataset that `save` wrote; safe for untrusted files.

    Pickled objects are never read. Sizes are checked before memory is allocated, checksums after.

    Args:
        path: the file.
        mapped: leave the columns in the file and map it, for logs larger than memory. The columns
            are then read-only NumPy arrays, valid while the file's content does not change; `save`
            replaces files and does not change them. A column that another program compressed cannot
            be mapped and is read.

    Returns:
        The dataset, with jax arrays as columns unless `mapped`.

    Raises:
        DatasetError: the file is damaged, truncated, of another kind or of a newer format; a column
            is missing, or of the wrong type or length; or the content is not valid (`validate`).
            The message names the file, and row and column where known.
        OSError: the file is missing or cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            dataset = _read(file, mapped)
            validate(dataset)
        except DatasetError as error:
            raise DatasetError(f"{os.fspath(path)}: {error}") from error.__cause__
        except DAMAGE as error:
            raise DatasetError(
                f"{os.fspath(path)}: not an .npz file of accel_rl, or damaged ({error}){_IMPORT}"
            ) from error
    return dataset


def _read(file: io.BufferedReader, mapped: bool) -> TabularDataset:
    with zipfile.ZipFile(file) as archive:
        encoded = _read_array(archive, "header", np.dtype(np.uint8), _HEADER_LIMIT)
        header = decoded(_HEADER, encoded.tobytes(), "header")
        if header.format_version > FORMAT_VERSION:
            raise DatasetError(
                f"format version {header.format_version} is newer than {FORMAT_VERSION}, the "
                f"newest that this accel_rl reads; accel_rl {header.accel_rl_version} wrote it"
            )
        to_map = file if mapped else None
        table = {name: _read_column(archive, name, header, to_map) for name in COLUMNS}
    episode = table.pop("episode")
    known = header.model_dump(exclude={"format", "accel_rl_version", "rows", "crc32"})
    info = DatasetInfo(**known, version=header.accel_rl_version)
    return TabularDataset(TabularTransition(**table), episode, info)


def _read_column(
    archive: zipfile.ZipFile, name: str, header: _Header, to_map: io.BufferedReader | None
) -> Any:
    dtype = COLUMNS[name].newbyteorder("<")
    values = _read_array(archive, name, dtype, 4 * header.rows, to_map)
    if (len(values), zlib.crc32(values.data)) != (header.rows, header.crc32.get(name)):
        raise DatasetError(f"column {name} does not match its checksum or number of rows")
    values = values.astype(COLUMNS[name], copy=False)
    return jnp.asarray(values) if to_map is None else values


def _read_array(
    archive: zipfile.ZipFile,
    name: str,
    dtype: np.dtype,
    limit: int,
    to_map: io.BufferedReader | None = None,
) -> np.ndarray:
    """Read a one-dimensional array of at most `limit` bytes, or map it from the archive's file."""
    member = archive.getinfo(f"{name}.npy")
    # The size is bounded before reading. zipfile unpacks no more than is read of these two alone.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DatasetError(f"column {name} must be stored or deflated, not packed otherwise")
    if member.file_size > limit + _NPY_HEADER_LIMIT:
        raise DatasetError(f"column {name} has {member.file_size} bytes, must have about {limit}")
    with archive.open(member) as stream:
        np.lib.format.read_magic(stream)
        shape, _, found = np.lib.format.read_array_header_1_0(stream)
        # Not by NumPy's own reader, which allocates as much as the shape claims.
        begin = stream.tell()
        size = member.file_size - begin
        if found != dtype or shape != (size // dtype.itemsize,):
            raise DatasetError(
                f"column {name} of {size} bytes must be {dtype}[N], got {found}{shape}"
            )
        if to_map is None or member.compress_type != zipfile.ZIP_STORED:
            # A read to the end makes zipfile verify its own checksum.
            return np.frombuffer(stream.read(), dtype)
    # The local header repeats name and extra field, whose lengths the directory does not tell.
    to_map.seek(member.header_offset + _LOCAL_LENGTHS)
    begin += member.header_offset + _LOCAL_HEADER + sum(struct.unpack("<HH", to_map.read(4)))
    return np.asarray(np.memmap(to_map, dtype, "r", begin, shape))
