"""Whether two threads run at once at the moment: virtual cores may share a real one, unseen."""

import hashlib
import threading
import time

import numpy as np

BLOCK = bytes(2**20)
AT_ONCE = 1.2  # times longer beside another thread, up to which both count as running


def slowdown() -> float:
    """How many times longer a thread's work takes while another does the same: 1 to 2 of two."""
    alone = min(_hashing() for _ in range(3))
    taken: list[float] = []
    threads = [threading.Thread(target=lambda: taken.append(_hashing())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(taken) / alone


def wait(limit: float = 20.0) -> float:
    """Wait for two cores, for at most so many seconds; the slowdown that it ends with."""
    until = time.monotonic() + limit
    while True:
        found = float(np.median([slowdown() for _ in range(3)]))
        if found <= AT_ONCE or time.monotonic() > until:
            return found
        time.sleep(0.5)


def _hashing() -> float:
    """Seconds; other threads may run meanwhile, as hashing gives up the interpreter's lock."""
    began = time.perf_counter()
    for _ in range(16):
        hashlib.sha256(BLOCK).digest()
    return time.perf_counter() - began
