"""Members of a set: ranks and DPUs, each a set itself."""

import contextlib
import dataclasses
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from pim_emu import host_library as lib
from pim_emu.vendor_python.allocation import Allocation
from pim_emu.vendor_python.program import VendorProgram


@dataclasses.dataclass(eq=False)
class SetState:
    """Fields of a set; beside it, a set has the attributes that users give it."""

    allocation: Allocation
    handle: lib.SetHandle
    log: Any = None  # stream of one DPU
    dpus: list[Any] = dataclasses.field(default_factory=list)
    ranks: list[Any] = dataclasses.field(default_factory=list)
    program: VendorProgram | None = None  # of one DPU


class DpuMembers:
    """Allocated DPUs, a rank of them, or one: iterated over, counted and freed."""

    _state: SetState

    def _add_members(self) -> None:
        for rank_handle in lib.rank_handles(self._state.handle):
            rank = self._member(rank_handle)
            rank._state.ranks = [rank]
            for dpu_handle in lib.member_handles(rank_handle):
                dpu = self._member(dpu_handle)
                dpu._state.ranks, dpu._state.dpus = [rank], [dpu]
                rank._state.dpus.append(dpu)
            self._state.ranks.append(rank)
            self._state.dpus += rank._state.dpus

    def __enter__(self) -> Self:
        self._state.allocation.check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._state.allocation.is_open:
            return
        if error is None:
            self.free()
        elif self._state.handle is self._state.allocation.handle:
            self._state.allocation.free()  # errors of what is queued would hide this one

    def __iter__(self) -> Iterator[Self]:
        return iter(self._state.dpus)

    def __len__(self) -> int:
        return len(self._state.dpus)

    def __repr__(self) -> str:
        return f"<DpuSet of {len(self)} DPUs in {len(self._state.ranks)} ranks>"

    def dpus(self) -> list[Self]:
        """Return the DPUs, each as a set."""
        return self._state.dpus

    def ranks(self) -> list[Self]:
        """Return the ranks, each as a set."""
        return self._state.ranks

    def free(self) -> None:
        """Wait for what is queued, and free the DPUs, of a set as it was allocated.

        Raises:
          DpuError: if it was freed, or is a rank or a DPU of another. Errors of what is queued are
            raised as by `sync`, once the DPUs are free.
        """
        state = self._state
        state.allocation.check_open()
        if state.handle is not state.allocation.handle:
            raise lib.DpuError("only the set that was allocated can be freed, no part of it")
        try:
            self._call("dpu_sync", state.handle)
        finally:
            state.allocation.free()
        if errors := state.allocation.callbacks.errors:  # of functions that nothing waits for
            raise errors[0]

    def _member(self, handle: lib.SetHandle) -> Self:
        made = object.__new__(type(self))
        made._state = SetState(self._state.allocation, handle)
        return made

    def _open(self) -> lib.SetHandle:
        self._state.allocation.check_open()
        return self._state.handle

    def _handles(self) -> list[lib.SetHandle]:
        return [dpu._state.handle for dpu in self]

    def _queued(self, async_mode: bool | None) -> bool:
        return self._state.allocation.queues if async_mode is None else bool(async_mode)

    def _call(self, function: str, *arguments: object, waits: bool = True) -> None:
        with self._calling(waits=waits):
            lib.call(function, *arguments)

    @contextlib.contextmanager
    def _calling(self, *, waits: bool) -> Iterator[None]:
        """Raise a callback's exception or a DPU's fault in place of the library's error.

        Args:
          waits: whether the call returns after all that was queued before it. Memory that was kept
            for that is then released.
        """
        state, callbacks = self._state, self._state.allocation.callbacks
        kept = state.allocation.kept()
        # The calls of a callback run at once, not after what is queued.
        inside = callbacks.is_running_here()
        try:
            yield
        except lib.DpuError as error:
            if error.status < 0 and not inside:  # of what was queued: it is raised once, here
                lib.library().dpu_sync(state.handle)
            cause = error.status & lib.CAUSE
            if cause == lib.INTERNAL and callbacks.errors:
                first = callbacks.errors[0]
                callbacks.errors.clear()
                raise first from None
            if cause == lib.DPU_FAULT:
                lib.raise_fault(self._handles(), error.status)
            raise
        if waits and not inside and state.handle is state.allocation.handle:
            state.allocation.release(kept)
