"""Storage of datasets as `.npz` files of the columns and a JSON header with checksums."""

import io
import json
import os
import zipfile
import zlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from accel_rl.datasets.dataset import FORMAT_VERSION, DatasetError, DatasetInfo, TabularDataset
from accel_rl.datasets.validation import COLUMNS, columns, validate
from accel_rl.io import atomic_write
from accel_rl.io.values import Json
from accel_rl.types import TabularTransition

FORMAT = "accel_rl.tabular_dataset"

_HEADER_LIMIT = 1 << 20  # bytes; a header has about 500
_NPY_HEADER_LIMIT = 4096  # bytes before a column's values; NumPy writes 128
_HEADER_TYPES: dict[str, type | tuple[type, ...]] = {
    "format_version": int,
    "accel_rl_version": str,
    "environment": str,
    "num_states": int,
    "num_actions": int,
    "policy": str,
    "seed": (int, type(None)),
    "dropped": int,
    "missing_next_action": int,
    "rows": int,
    "crc32": dict,
}
_IMPORT = "; `accel-rl import`, or datasets.from_arrays, takes a log of your own"
# Exceptions that zipfile and NumPy raise for damaged files.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
    OverflowError,
)


def save(path: str | os.PathLike[str], dataset: TabularDataset) -> None:
    """Write a dataset as an uncompressed `.npz`, atomically.

    NumPy alone can read the file: the columns are arrays, and `header` holds UTF-8 JSON as uint8.
    The same dataset yields the same bytes. If the write fails or is killed, an older file is
    unchanged.

    Args:
        path: the file, by convention ending in `.npz`; no suffix is appended.
        dataset: the dataset; it is validated first.

    Raises:
        TypeError: `dataset` is not a dataset, or `path` is not a path.
        DatasetError: the dataset is not valid.
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


def load(path: str | os.PathLike[str]) -> TabularDataset:
    """Read a dataset that `save` wrote; safe for untrusted files.

    Pickled objects are never read. Sizes are checked before memory is allocated, checksums after.

    Args:
        path: the file.

    Returns:
        The dataset, with jax arrays as columns.

    Raises:
        DatasetError: the file is damaged, truncated, of another kind or of a newer format; a column
            is missing, or of the wrong type or length; or the content is not valid (`validate`).
            The message names the file, and row and column where known.
        OSError: the file is missing or cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            dataset = _read(file)
            validate(dataset)
        except DatasetError as error:
            raise DatasetError(f"{os.fspath(path)}: {error}") from error.__cause__
        except DAMAGE as error:
            raise DatasetError(
                f"{os.fspath(path)}: not a readable .npz file, damaged or cut short ({error})"
            ) from error
    return dataset


def _read(file: io.BufferedReader) -> TabularDataset:
    if not zipfile.is_zipfile(file):
        raise DatasetError(f"not an .npz file, or cut short: it has no zip directory{_IMPORT}")
    with zipfile.ZipFile(file) as archive:
        header = _read_header(archive)
        table = {name: _read_column(archive, name, header) for name in COLUMNS}
    episode = table.pop("episode")
    info = DatasetInfo(
        **{name: header[name] for name in ("environment", "num_states", "num_actions", "policy")},
        **{name: header[name] for name in ("seed", "dropped", "missing_next_action")},
        version=header["accel_rl_version"],
        format_version=header["format_version"],
    )
    return TabularDataset(TabularTransition(**table), episode, info)


def _read_header(archive: zipfile.ZipFile) -> dict[str, Json]:
    if "header.npy" not in archive.namelist():
        raise DatasetError(f"no header: an .npz file, but not one that accel_rl wrote{_IMPORT}")
    try:
        encoded, _ = _read_array(archive, "header", np.dtype(np.uint8), _HEADER_LIMIT)
        header = json.loads(encoded.tobytes())
        kind = header["format"]
    except (DatasetError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise DatasetError("its header is not one that accel_rl wrote") from error
    if kind != FORMAT:
        raise DatasetError(f"its format is {kind!r}, must be {FORMAT!r}")
    version = header.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise DatasetError(
            f"format version {version} is newer than {FORMAT_VERSION}, the newest that this "
            f"accel_rl reads; accel_rl {header.get('accel_rl_version')} wrote it"
        )
    for name, kinds in _HEADER_TYPES.items():
        if not isinstance(header.get(name), kinds) or name not in header:
            raise DatasetError(f"header field {name} is missing or of the wrong type")
    for name in ("format_version", "rows"):
        if header[name] < 1:
            raise DatasetError(f"header field {name} must be at least 1, got {header[name]}")
    return header


def _read_column(archive: zipfile.ZipFile, name: str, header: dict[str, Json]) -> Any:
    if f"{name}.npy" not in archive.namelist():
        raise DatasetError(f"column {name} is missing")
    values, checksum = _read_array(
        archive, name, COLUMNS[name].newbyteorder("<"), 4 * header["rows"]
    )
    if values.shape != (header["rows"],):
        raise DatasetError(
            f"column {name} must have {header['rows']} rows as the header says, got {len(values)}"
        )
    if checksum != header["crc32"].get(name):
        raise DatasetError(f"column {name} does not match its checksum")
    return jnp.asarray(values.astype(COLUMNS[name], copy=False))


def _read_array(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype, limit: int
) -> tuple[np.ndarray, int]:
    """Read a one-dimensional array of at most `limit` bytes; return it and its checksum."""
    member = archive.getinfo(f"{name}.npy")
    # The size is bounded before reading. A read to the end makes zipfile verify its own checksum.
    if member.file_size > limit + _NPY_HEADER_LIMIT:
        raise DatasetError(f"column {name} has {member.file_size} bytes, must have about {limit}")
    content = archive.read(member)
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise DatasetError(f"column {name} has .npy version {version}, must be (1, 0)")
    shape, _, found = np.lib.format.read_array_header_1_0(stream)
    start = stream.tell()
    if found != dtype:
        raise DatasetError(f"column {name} must be {dtype}, got {found}")
    if len(shape) != 1 or len(content) - start != shape[0] * dtype.itemsize:
        raise DatasetError(
            f"column {name} claims shape {shape}, and holds {len(content) - start} bytes of values"
        )
    values = np.frombuffer(content, dtype, offset=start)
    return values, zlib.crc32(values.data)
