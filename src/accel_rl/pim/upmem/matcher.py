"""Associative searches through the host library, on a set of DPUs that hold the keys."""

import ctypes
import os
import weakref
from typing import Any

import numpy as np

from accel_rl.io.values import Json
from accel_rl.pim.upmem.build import dpu_program
from accel_rl.pim.upmem.errors import UpmemError
from accel_rl.pim.upmem.host import LaunchReport, check_agrees, host, read_report
from accel_rl.pim.upmem.toolkit import Toolkit

# Constants of kernels/upmem/match.h.
GROUP = 64  # slots whose match lines are one word
MOST_QUERIES = 256  # queries in the union of one launch
FEW = 32  # ranges whose union takes fewer steps
TERNARY, RANGE, ANY_TERNARY, ANY_OF_FEW, ANY_OF_MANY = range(5)


class _Keys(ctypes.Structure):
    """`struct arl_upmem_keys` of kernels/upmem/host/match_control.cpp."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("path", "profile")),
        *((name, ctypes.c_uint32) for name in ("dpus", "bytes", "groups")),
        *((name, ctypes.c_int32) for name in ("asynchronous", "count_instructions")),
    ]


class Matcher:
    """Set of DPUs that hold keys and search them.

    Arrays must be contiguous and of the stated shapes and dtypes: the library reads raw pointers.

    Args:
      toolkit: SDK that builds and runs the program.
      dpus: number of DPUs, D.
      groups: groups of 64 slots per DPU, G.
      bits: bits of a key.
      tasklets, machine, asynchronous, count_instructions: as for `pim.match.KeyMemory`.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        dpus: int,
        groups: int,
        *,
        bits: int,
        tasklets: int,
        machine: str | None,
        asynchronous: bool,
        count_instructions: bool,
    ):
        flags = ";".join(toolkit.compiler_flags(machine))
        options = {"KEY_BITS": bits, "TASKLETS": tasklets, "DPU_FLAGS": flags}
        self._host = host(toolkit)
        self._call = _functions(self._host.library)
        keys = _Keys(
            path=str(dpu_program(toolkit, {"PROGRAM": "match", **options})).encode(),
            profile=toolkit.profile(machine).encode(),
            dpus=dpus,
            bytes=bits // 8,
            groups=groups,
            asynchronous=asynchronous,
            count_instructions=count_instructions,
        )
        self._dpus, self._groups, self._owner = dpus, groups, os.getpid()
        self._matcher = ctypes.c_void_p()
        self._check(self._call["open"](ctypes.byref(keys), ctypes.byref(self._matcher)))
        self._close = weakref.finalize(
            self, _close, self._call["close"], self._matcher, self._owner
        )

    def load(self, keys: np.ndarray, valid: np.ndarray) -> None:
        """Load keys [D * G * 64] and their valid bits, uint8 [D * G * 8]."""
        self._check(self._call["load"](self._known(), _data(keys), _data(valid)))

    def update(self, slots: np.ndarray, keys: np.ndarray, valid: np.ndarray) -> None:
        """Replace keys, uint32 [K], and valid bits, uint8 [K], of slots, uint32 [K]."""
        columns = (_data(column) for column in (slots, keys, valid))
        self._check(self._call["update"](self._known(), *columns, len(slots)))

    def search(
        self, work: int, queries: np.ndarray, answers: int, lines: bool
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return counts, uint32 [answers, D], and match lines, uint64 [answers, D * G] or None.

        Args:
          work: kind of search, TERNARY to ANY_OF_MANY.
          queries: uint32 [M, 2], in the format of match.h.
          answers: M, or 1 for a union.
          lines: fetch match lines.
        """
        counts = np.empty((answers, self._dpus), np.uint32)
        found = np.empty((answers, self._dpus * self._groups), np.uint64) if lines else None
        to = None if found is None else _data(found)
        self._check(
            self._call["search"](
                self._known(), work, _data(queries), len(queries), _data(counts), to
            )
        )
        return counts, found

    def report(self) -> LaunchReport:
        """Report DPU work since the DPUs were allocated."""
        matcher = self._known()
        return read_report(lambda report: self._call["report"](matcher, report))

    def close(self) -> None:
        """Free the DPUs; nothing else may be called afterwards."""
        self._close()

    def _known(self) -> ctypes.c_void_p:
        if not self._close.alive:
            raise UpmemError("the DPUs were freed by close()")
        if self._owner != os.getpid():
            raise UpmemError("the DPUs are those of the process that this one was forked off")
        return self._matcher

    def _check(self, number: int) -> None:
        if number:
            raise self._host.error(number) or UpmemError("an error of the DPUs is known no more")


def _functions(library: ctypes.CDLL) -> dict[str, Json]:
    handle, data, size = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
    arguments: dict[str, list[Any]] = {
        "open": [data, data],
        "load": [handle, data, data],
        "update": [handle, data, data, data, size],
        "search": [handle, ctypes.c_int32, data, ctypes.c_uint32, data, data],
        "report": [handle, data],
        "close": [handle],
    }
    prefix = "accel_rl_upmem_match_"
    check_agrees(library, prefix + "agrees", _Keys)
    made = {name: library[prefix + name] for name in arguments}
    for name, function in made.items():
        function.argtypes = arguments[name]
        function.restype = None if name in ("report", "close") else ctypes.c_uint64
    return made


def _data(array: np.ndarray) -> int:
    return array.ctypes.data


def _close(close: Any, matcher: ctypes.c_void_p, owner: int) -> None:
    if owner == os.getpid():  # in a forked child the DPUs are the parent's
        close(matcher)
