"""Locks of files, which processes hold until they close the file or end."""

import errno
import fcntl
from typing import IO, Any


def lock_file(file: int | IO[Any]) -> None:
    """Lock an open file for this process, where the file system has locks.

    Raises:
      BlockingIOError: if another process holds the lock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP):
            raise
