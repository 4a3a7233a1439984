"""The file of a server's snapshots, which one server has at a time."""

import contextlib
import errno
import fcntl
import os
import weakref

from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import SnapshotFailed

_BUSY, _IO_ERROR = 16, 17  # statuses


class SnapshotPlace(Closing):
    """A path for snapshots, held by a lock that the kernel gives back if the process is killed.

    The lock is on a file beside it, PATH.lock, as each snapshot is a new file. A process that is
    killed leaves that file behind, and nobody is held up by it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Takes it; makes the folder where there is none.

        Raises:
          SnapshotFailed: if another server has it, or nothing can be written there.
        """
        self.path = os.fspath(path)
        if os.path.isdir(self.path):
            raise SnapshotFailed(
                f"a snapshot cannot be written to {self.path}: it is a directory", _IO_ERROR
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
        self._end.atexit = False  # a forked child is not to take the file away

    def close(self) -> None:
        """Gives it back; a second time does nothing."""
        self._end()


def _open_alone(path: str) -> int:
    """The file, locked. Raises BlockingIOError if somebody else has it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(file)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # who had it took it away just now


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # the file system has no locks
            raise


def _give_back(file: int, path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
    os.close(file)
