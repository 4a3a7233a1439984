"""Child processes of tests: they hear signals, and end in every outcome of a test."""

import contextlib
import os
import signal
import subprocess
import sys
import time

LIMIT = 300.0  # seconds: what has not happened by then never will, however busy the machine

# A process inherits which signals are ignored, and a shell's background jobs ignore SIGINT.
_LISTEN = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextlib.contextmanager
def start(*words, **settings):
    """Start Python with these arguments, as text; kill it when the context ends."""
    command = [sys.executable, "-IS", "-c", _LISTEN, sys.executable, *map(str, words)]
    with subprocess.Popen(command, text=True, **settings) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def frozen(process):
    """In which a child process does nothing; what comes waits for it."""
    process.send_signal(signal.SIGSTOP)
    try:
        # On another core it runs on for a while: until all of its threads have heard the signal.
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def wait_until(condition):
    """Wait for a condition of which no event tells."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"not within {LIMIT} s"
        time.sleep(0.01)
