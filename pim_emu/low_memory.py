"""Addresses below 2 GiB, kept from the heap until the engine takes them.

A DPU program's code must lie there. In a Python that is not position-independent, as Debian's, the
heap grows through these addresses; so `import pim_emu` keeps some, long before the engine is
loaded.
"""

import contextlib
import mmap
import sys

_BYTES = 256 << 20  # as much as the engine keeps: see native/engine/low_memory.c
_MAP_32BIT, _MAP_NORESERVE = 0x40, 0x4000  # of Linux on x86-64; mmap has no names for them
_kept: list[mmap.mmap] = []


def keep() -> None:
    """Keep addresses, where the system can; nothing is read or written there."""
    if sys.platform != "linux" or _kept:
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_32BIT | _MAP_NORESERVE
    with contextlib.suppress(OSError):  # no such gap, or a limit on the process's addresses
        _kept.append(mmap.mmap(-1, _BYTES, flags=flags, prot=0))


def give_back() -> None:
    """Give the addresses back; the engine, when it is loaded, keeps as much at once."""
    while _kept:
        _kept.pop().close()
