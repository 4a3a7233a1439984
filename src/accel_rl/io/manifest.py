"""Manifests: lists of a folder's files with SHA-256 digests, to detect damage."""

import errno
import hashlib
import json
import os
import pathlib
from typing import NoReturn

from accel_rl.io.atomic import atomic_write, sync_directory

NAME = "manifest.json"


class DamagedError(ValueError):
    """Error for a folder whose content differs from what was written to it."""


def write_manifest(folder: pathlib.Path) -> None:
    """Flush every file below a folder to disk, then write the manifest.

    Raises:
      OSError: if the disk is full, ...
    """
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
    try:
        listed = dict(json.loads((folder / NAME).read_text(encoding="utf-8"))["sha256"])
    except FileNotFoundError:
        raise DamagedError(f"{NAME} is missing") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{NAME} cannot be read: {error}") from error
    except OSError as error:
        raise_damage(NAME, error)
    for name, digest in listed.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise DamagedError(f"{name} is missing") from None
        except OSError as error:
            raise_damage(name, error)
        if found != digest:
            raise DamagedError(f"{name} was changed after it was written")


def raise_damage(name: str, error: OSError) -> NoReturn:
    """Raise DamagedError for errors that mean damage; re-raise others, such as permissions."""
    if error.errno in (errno.EIO, errno.ENOENT, errno.EISDIR, errno.ENOTDIR):
        raise DamagedError(f"{name} cannot be read: {error}") from error
    raise error


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
