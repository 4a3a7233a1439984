"""Files of a vault: the array of each field, their description, and the lock."""

import math
import pathlib
from typing import Any

import jax
import numpy as np

from accel_rl.io.locks import lock_file
from accel_rl.types import PyTree

# Bytes of an array's file and of the chunks that it holds, before compression. A random read takes
# one chunk; files of a chunk each would be too many.
_FILE, _CHUNK = 1 << 20, 1 << 14


def fields_of(items: PyTree) -> list[dict[str, Any]]:
    """Return names, dtypes and shapes of leaves, as the index has them."""
    named = [(jax.tree_util.keystr(at), leaf) for at, leaf in jax.tree.leaves_with_path(items)]
    return [{"name": n, "dtype": str(leaf.dtype), "shape": [*leaf.shape]} for n, leaf in named]


def check_fields(kept: list[dict[str, Any]], found: list[dict[str, Any]], what: str) -> None:
    """Raise ValueError that names the first field in which `found` differs from the vault's."""
    names = [[each["name"] for each in fields] for fields in (kept, found)]
    if names[0] != names[1]:
        raise ValueError(f"the vault has the fields {names[0]}, {what} has {names[1]}")
    for theirs, ours in zip(kept, found, strict=True):
        if theirs != ours:
            raise ValueError(
                f"{ours['name']} is {theirs['dtype']}{theirs['shape']} in the vault, got "
                f"{ours['dtype']}{ours['shape']}"
            )


def open_array(
    path: pathlib.Path, field: dict[str, Any], axes: tuple[int, ...], new: bool, read_only: bool
) -> Any:
    """Open the array [rows, *axes, *field] of a field, or make it anew without rows."""
    import tensorstore  # late: the import takes 0.3 s

    shape = [*axes, *field["shape"]]
    spec: dict[str, Any] = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path.absolute()}/"},
        # A chunk that is missing is an error, not zeros; so chunks of zeros must be stored.
        "fill_missing_data_reads": False,
        "store_data_equal_to_fill_value": True,
    }
    if not new:
        return tensorstore.open(spec, read=True, write=not read_only).result()
    row_bytes = max(1, np.dtype(field["dtype"]).itemsize * math.prod(shape))
    chunk = max(1, _CHUNK // row_bytes)
    file = chunk * max(1, _FILE // (chunk * row_bytes))
    row = [max(1, size) for size in shape]
    plain, checked = {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}
    shards = {
        "chunk_shape": [chunk, *row],
        "codecs": [plain, {"name": "zstd", "configuration": {"level": 1}}, checked],
        "index_codecs": [plain, checked],
    }
    spec["metadata"] = {
        "shape": [0, *shape],
        "data_type": field["dtype"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [file, *row]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "codecs": [{"name": "sharding_indexed", "configuration": shards}],
    }
    return tensorstore.open(spec, create=True, delete_existing=True).result()


def locked(path: pathlib.Path) -> Any:
    """Lock a vault for appending; the open file that is returned holds the lock."""
    lock = (path / ".lock").open("w")
    try:
        lock_file(lock)
    except BlockingIOError:
        lock.close()
        raise BlockingIOError(f"another process appends to {path}") from None
    return lock
