"""Atomic file writes: a file holds either all of the new content or all of the old."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any, Literal

from accel_rl.io.values import Json


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file for writing that replaces `path` once it is complete and on disk.

    The content goes to a hidden file in the same directory, since a rename is atomic only within a
    file system. It is flushed to disk and then renamed to `path`. If an exception or a kill stops
    the writer earlier, the old file is unchanged. A killed process also leaves its hidden
    `.NAME.*.tmp` behind, which nothing reads.

    Args:
        path: the file to write. A symbolic link is followed, and an existing file keeps its mode.
        mode: "wb" for bytes, or "w" for UTF-8 text without newline translation.

    Yields:
        The open file.

    Raises:
        OSError: the directory does not exist, the path is a directory, the disk is full, ...; the
            error names `path`, not the hidden file.
    """
    if os.path.isdir(path) or not os.path.basename(os.fspath(path)):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    target = os.path.realpath(path)
    directory, name = os.path.split(target)
    draft = os.path.join(directory, f".{name}.{secrets.token_hex(8)}.tmp")
    text: dict[str, Json] = {"encoding": "utf-8", "newline": ""} if mode == "w" else {}
    try:
        with open(draft, mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(draft, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        if (
            isinstance(error, OSError)
            and error.errno is not None
            # The error of `open` names the draft, those of write and fsync no file.
            and error.filename in (None, draft)
            and error.filename2 is None
        ):
            error.filename = os.fspath(path)
        raise
    sync_directory(directory)


def sync_directory(directory: str) -> None:
    """Flush a directory to disk, so that new names in it survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
