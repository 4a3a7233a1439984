"""SIGINT and SIGTERM as something to wait for, for commands that end in an order of their own."""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator

ENDS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_requests() -> Iterator[Callable[[float | None], int]]:
    """Hear SIGINT and SIGTERM without an exception: none is lost, and none interrupts the end.

    A signal that the parent ignores stays ignored. Outside the main thread none is heard.

    Yields:
        wait(seconds): waits for a signal, with None as long as it takes; returns the number of the
          first that has come since the block began, 0 if none has.
    """
    came: list[int] = []
    read, write = os.pipe()
    os.set_blocking(write, False)

    def wait(seconds: float | None) -> int:
        until = None if seconds is None else time.monotonic() + seconds
        while not came:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([read], [], [], left)[0]:
                return 0
            os.read(read, 1024)
        return came[0]

    def hear(number: int, frame: object) -> None:
        came.append(number)

    main = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) for each in ENDS} if main else {}
    # The byte of a signal is in the pipe whichever thread it reaches, and also if it comes just
    # before the wait.
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False) if main else None
    try:
        for each, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(each, hear)
        yield wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if woken is not None:
            signal.set_wakeup_fd(woken)
        os.close(read)
        os.close(write)
