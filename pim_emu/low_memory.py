"""Reservation of addresses below 2 GiB for the engine, before the heap takes them.

A DPU program's code must lie there. In a Python that is not position-independent, such as Debian's,
the heap grows through these addresses. So `import pim_emu` reserves some, long before the engine is
loaded.
"""

import contextlib
import mmap
import sys

_BYTES = 256 << 20  # as much as the engine keeps: see native/engine/low_memory.c
_MAP_32BIT, _MAP_NORESERVE = 0x40, 0x4000  # of Linux on x86-64; mmap has no names for them
_kept: list[mmap.mmap] = []


def keep() -> None:
    """Reserve the addresses, where the system can, as inaccessible memory."""
    if sys.platform != "linux" or _kept:
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_32BIT | _MAP_NORESERVE
    with contextlib.suppress(OSError):  # no such gap, or a limit on the process's addresses
        _kept.append(mmap.mmap(-1, _BYTES, flags=flags, prot=0))


def kept_bytes() -> int:
    """Return the bytes of addresses that are reserved."""
    return sum(map(len, _kept))


def give_back() -> None:
    """Release the addresses; the engine reserves as many as soon as it is loaded."""
    while _kept:
        _kept.pop().close()
