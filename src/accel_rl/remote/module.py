"""Access to the native (C++) module of `remote`."""

from typing import Any


def native() -> Any:
    """Return the native module, in which the server runs.

    Raises:
      ImportError: if it was not built; the message has installation instructions.
    """
    try:
        from accel_rl.remote import _native
    except ImportError as error:
        raise ImportError(
            "the replay server was not built: install g++ and python3-dev, then reinstall "
            f"accel_rl ({error}). Clients over TCP and Unix sockets work without it."
        ) from error
    return _native
