"""Closing of a port from a thread, which ends calls that wait at the server."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from accel_rl.remote.port import RemotePort

LOOK = 0.1  # seconds between calls of `over`


@contextlib.contextmanager
def watched(port: RemotePort, over: Callable[[], str | None]) -> Iterator[None]:
    """Close the port as soon as `over` returns a reason, or at the end of the context."""
    reasons: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(LOOK):
            if (reason := over()) is not None:
                reasons.append(reason)
                port.close()
                return

    watching = threading.Thread(target=watch, name="watch", daemon=True)
    watching.start()
    try:
        yield
    except RuntimeError as error:
        if reasons:
            raise RuntimeError(reasons[0]) from error
        raise
    finally:
        ended.set()
        watching.join()
        port.close()
