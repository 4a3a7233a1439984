"""Manifests: lists of a folder's files with SHA-256 digests, to detect damage."""

import contextlib
import errno
import hashlib
import json
import os
import pathlib
from collections.abc import Iterator

from accel_rl.io.atomic import atomic_write, sync_directory

NAME = "manifest.json"
_DAMAGE = (errno.EIO, errno.ENOENT, errno.EISDIR, errno.ENOTDIR)


class DamagedError(ValueError):
    """Error for a folder whose content differs from what was written to it."""


def write_manifest(folder: pathlib.Path) -> None:
    """Flush every file below a folder to disk, then write the manifest."""
    listed = {}
    for path in _files(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            listed[path.relative_to(folder).as_posix()] = hashlib.file_digest(
                file, "sha256"
            ).hexdigest()
    for directory, _, _ in os.walk(folder):
        sync_directory(directory)
    with atomic_write(folder / NAME, "w") as file:
        json.dump({"sha256": listed}, file, indent=1)


def check_manifest(folder: pathlib.Path) -> None:
    """Check a folder's files against its manifest.

    Raises:
      DamagedError: if a file or the manifest is missing or was changed.
    """
    with damage(NAME):
        listed = dict(json.loads((folder / NAME).read_text(encoding="utf-8"))["sha256"])
    for name, digest in listed.items():
        with damage(name), (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            raise DamagedError(f"{name} was changed after it was written")


@contextlib.contextmanager
def damage(name: object) -> Iterator[None]:
    """Raise DamagedError for errors that mean damage; let others pass, such as permissions."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, OSError) and error.errno not in _DAMAGE:
            raise
        raise DamagedError(f"{name}: {error}") from error


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
