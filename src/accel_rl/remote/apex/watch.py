"""A port that is closed from a thread, so that a call that waits at the server ends."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from accel_rl.remote.port import RemotePort

LOOK = 0.1  # seconds between two looks at whether to end


@contextlib.contextmanager
def watched(port: RemotePort, over: Callable[[], str | None]) -> Iterator[None]:
    """Closes the port as soon as `over` gives a reason, and in any case at the end.

    Raises:
      RuntimeError: with the reason, if work failed once it was closed for it.
    """
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
