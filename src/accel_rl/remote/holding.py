"""Exclusive lock on the snapshot file of a server."""

import contextlib
import os
import weakref

from accel_rl.io.locks import lock_file
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import SnapshotFailed

_BUSY, _IO_ERROR = 16, 17  # statuses


class SnapshotPlace(Closing):
    """Snapshot path, held by a lock that the kernel releases if the process is killed.

    The lock is on a file beside it, PATH.lock, because each snapshot is a new file. A killed
    process leaves PATH.lock behind, unlocked; it blocks no other server.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Lock the path; create a missing folder.

        Raises:
          SnapshotFailed: if another server holds the lock, or the path is not writable.
        """
        self.path = os.fspath(path)
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            kind = "a directory" if os.path.isdir(self.path) else "no regular file"
            raise SnapshotFailed(
                f"a snapshot cannot be written to {self.path}: it is {kind}", _IO_ERROR
            )
        lock = f"{self.path}.lock"
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            file = _open_alone(lock)
        except BlockingIOError:
            raise SnapshotFailed(
                f"another server has the snapshot {self.path}: give each server its own", _BUSY
            ) from None
        except OSError as error:
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = "its folder is a file" if is_file else error.strerror
            raise SnapshotFailed(
                f"a snapshot cannot be written to {self.path}: {why}", _IO_ERROR
            ) from error
        self._end = weakref.finalize(self, _give_back, file, lock)
        self._end.atexit = False  # a forked child must not unlink the file at exit

    def close(self) -> None:
        """Release the lock. Idempotent."""
        self._end()


def _open_alone(path: str) -> int:
    """Open and lock a file; raise BlockingIOError if another process holds the lock."""
    while True:
        # Not through a link that somebody has put there.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            lock_file(file)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # its holder has unlinked it since it was opened


def _give_back(file: int, path: str) -> None:
    # Unlink while locked: afterwards the file may be another server's lock already.
    with contextlib.suppress(OSError):
        os.unlink(path)
    os.close(file)
