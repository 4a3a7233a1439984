"""The part of `remote` that is in C++."""

from typing import Any


def native() -> Any:
    """The module in C++ that the server runs in.

    Raises:
      ImportError: if it was not built; the message says what to do.
    """
    try:
        from accel_rl.remote import _native
    except ImportError as error:
        raise ImportError(
            "the replay memory server was not built: install g++ and python3-dev, then reinstall "
            f"accel_rl ({error}). Clients over TCP and Unix sockets work without it."
        ) from error
    return _native
