"""DPUs as allocated, which a set shares with its ranks and its DPUs."""

import ctypes
import gc
import itertools
import weakref
from collections.abc import Iterable

from pim_emu import host_library as lib
from pim_emu.arguments import whole
from pim_emu.vendor_python.callbacks import Callbacks


class Allocation:
    """Allocated DPUs, and what must last as long as something is queued for them.

    DPUs that are not freed are freed when the garbage collector finds that nothing refers to them:
    a set and its parts refer to each other. An allocation that finds too few runs the collector.

    Attributes:
      handle: the allocated set.
      queues: whether copies, launches and calls are queued unless told otherwise.
      callbacks: functions that may still be called.
    """

    def __init__(self, handle: lib.SetHandle, queues: bool):
        self.handle, self.queues = handle, queues
        self.callbacks = Callbacks()
        self._pending: dict[int, object] = {}
        self._numbers = itertools.count()
        self._finalizer = weakref.finalize(self, _free, handle)

    @property
    def is_open(self) -> bool:
        """Tell whether the DPUs are not freed."""
        return self._finalizer.alive

    def check_open(self) -> None:
        """Raise DpuError if the DPUs were freed."""
        if not self.is_open:
            raise lib.DpuError("the set was freed")

    def keep(self, memory: object) -> None:
        """Keep the memory of a transfer that was queued."""
        self._pending[next(self._numbers)] = memory

    def kept(self) -> list[int]:
        """Return the numbers of what is kept now."""
        return list(self._pending)

    def release(self, numbers: Iterable[int]) -> None:
        """Forget memory, of transfers that have ended."""
        for number in numbers:
            self._pending.pop(number, None)

    def free(self) -> None:
        """Wait for what is queued, and free the DPUs."""
        self.check_open()
        lib.call("dpu_free", self.handle)
        self._finalizer.detach()
        self._pending.clear()
        self.callbacks.clear()


def allocate(nr_dpus: int | None, nr_ranks: int | None, profile: str) -> lib.SetHandle:
    """Allocate a number of DPUs or ranks, or all DPUs if neither is given.

    Raises:
      DpuError: if both are given, or there are not as many.
      TypeError: if a number is no integer.
      ValueError: if a number is below 1.
    """
    if nr_dpus is not None and nr_ranks is not None:
        raise lib.DpuError("nr_dpus and nr_ranks exclude each other")
    if nr_dpus is None and nr_ranks is None:
        nr_dpus = lib.ALLOCATE_ALL
    name, number = ("nr_dpus", nr_dpus) if nr_ranks is None else ("nr_ranks", nr_ranks)
    function = "dpu_alloc" if nr_ranks is None else "dpu_alloc_ranks"
    count = ctypes.c_uint32(whole(name, number, 1, lib.ALLOCATE_ALL))
    handle = lib.SetHandle()
    arguments = count, profile.encode() if profile else None, ctypes.byref(handle)
    try:
        lib.call(function, *arguments)
    except lib.DpuError as error:
        if error.status != lib.TOO_FEW_DPUS:
            raise
        gc.collect()  # frees sets that nothing refers to any more
        lib.call(function, *arguments)
    return handle


def _free(handle: lib.SetHandle) -> None:
    lib.library().dpu_free(handle)  # not `call`: another call's complaint may be waiting
