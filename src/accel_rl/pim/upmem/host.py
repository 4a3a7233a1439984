"""Host library, called through ctypes: programs, XLA FFI targets, reports and errors."""

import atexit
import ctypes
import dataclasses
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import jax

from accel_rl.pim.upmem.build import fingerprint, host_library
from accel_rl.pim.upmem.errors import BY_KIND, SdkMissing, UpmemError
from accel_rl.pim.upmem.toolkit import Toolkit

_LOG_BYTES = 1 << 20
_NUMBER = re.compile(r"upmem \[error (\d+)\]")  # in messages of exceptions that jax raises


@dataclasses.dataclass(frozen=True)
class LaunchReport:
    """Work done on the DPUs; see `recording`.

    Attributes:
      dpus: DPUs in the set that was used last.
      counts_instructions: 1 if these DPUs counted instructions, 0 if cycles.
      loads: transfers of rows to the DPUs.
      launches: launches, each of all DPUs together.
      program_loads: transfers of a program to the DPUs.
      scattered_bytes: bytes of rows and lists of entries, different on each DPU, over all loads.
      load_broadcast_bytes: bytes broadcast to all DPUs together with the rows.
      broadcast_bytes: bytes broadcast to all DPUs with launches: tables and parameters.
      pushed_bytes: bytes sent with launches, different on each DPU: tables of independent agents;
        by owner, runs and values.
      gathered_bytes: bytes fetched from each DPU over all launches: tables, listed entries or runs,
        and counters.
      slowest: highest count of any DPU, summed over launches; cycles or instructions.
      counted: counts of all DPUs, summed over launches.
      load_seconds: measured on the host, transfers of rows.
      launch_seconds: measured on the host, launches with their transfers.
    """

    dpus: int
    counts_instructions: int
    loads: int
    launches: int
    program_loads: int
    scattered_bytes: int
    load_broadcast_bytes: int
    broadcast_bytes: int
    pushed_bytes: int
    gathered_bytes: int
    slowest: int
    counted: int
    load_seconds: float
    launch_seconds: float

    def since(self, before: "LaunchReport") -> "LaunchReport":
        """Return the work done after an earlier report."""
        last = {"dpus", "counts_instructions"}
        pairs = ((f.name, getattr(self, f.name), getattr(before, f.name)) for f in _FIELDS)
        return LaunchReport(
            **{name: new if name in last else new - old for name, new, old in pairs}
        )


_FIELDS = dataclasses.fields(LaunchReport)
NOTHING = LaunchReport(**{field.name: field.type(0) for field in _FIELDS})  # type: ignore[operator]


class _Program(ctypes.Structure):
    """`struct arl_upmem_program` of kernels/upmem/host/control.cpp."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("path", "profile")),
        *((name, ctypes.c_int32) for name in ("numerics", "rule", "order")),
        *((name, ctypes.c_uint32) for name in ("stride", "block", "states", "actions")),
        *((name, ctypes.c_uint32) for name in ("random_blocks", "lanes", "runs")),
        *((name, ctypes.c_uint32) for name in ("tasklets", "workspace")),
        *((name, ctypes.c_int32) for name in ("asynchronous", "count_instructions")),
    ]


class _Error(ctypes.Structure):
    """`struct arl_upmem_error`."""

    _fields_ = [("kind", ctypes.c_int32), ("status", ctypes.c_int32), ("dpu", ctypes.c_int64)]


class _Report(ctypes.Structure):
    """`LaunchReport` of kernels/upmem/host/report.hpp."""

    _fields_ = [
        (field.name, ctypes.c_double if field.type is float else ctypes.c_uint64)
        for field in _FIELDS
    ]


def read_report(fill: Callable[[object], object]) -> LaunchReport:
    """Return the report that a library function writes to a pointer."""
    report = _Report()
    fill(ctypes.byref(report))
    return LaunchReport(**{field.name: getattr(report, field.name) for field in _FIELDS})


def check_agrees(library: ctypes.CDLL, name: str, *structs: type[ctypes.Structure]) -> None:
    """Raise SdkMissing unless a library's function `name` confirms the sizes of its structs."""
    agrees = getattr(library, name, None)
    sizes = (ctypes.c_size_t(ctypes.sizeof(struct)) for struct in structs)
    if agrees is None or not agrees(*sizes):
        raise SdkMissing("the sources of the DPU programs are not of this accel_rl: reinstall it")


class Host:
    """Loaded host library of one toolkit; at most one in a process.

    Attributes:
      library: functions of the library.

    Raises:
      SdkMissing, BuildFailed: if the library is absent and cannot be built.
    """

    def __init__(self, toolkit: Toolkit):
        path = host_library(toolkit)
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:  # for example, libdpu.so was removed
            raise SdkMissing(
                f"{path} cannot be loaded: {error}; remove it, so that it is built again"
            ) from error
        check_agrees(self.library, "accel_rl_upmem_agrees", _Program, _Error, _Report)
        self.library.accel_rl_upmem_error.argtypes = [
            *(ctypes.c_uint64, ctypes.c_void_p),
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t),
        ]
        self.library.accel_rl_upmem_add.argtypes = [ctypes.c_int64, ctypes.c_void_p]
        self.library.accel_rl_upmem_add.restype = None
        self._fingerprint = fingerprint(toolkit)
        for name in ("load", "launch", "launch_owned"):
            symbol = f"accel_rl_upmem_{name}"
            handler = jax.ffi.pycapsule(getattr(self.library, symbol))
            jax.ffi.register_ffi_target(symbol, handler, platform="cpu")
        atexit.register(self.release)

    def add(self, path: Path, profile: str, **settings: int) -> int:
        """Register a program; return its number for handlers, the same for equal programs.

        Args:
          path: of the program.
          profile: of the DPUs, for `dpu_alloc`.
          **settings: other fields of `struct arl_upmem_program`; enums are those of kernels/common.
        """
        text = repr((self._fingerprint, str(path), profile, sorted(settings.items())))
        digest = hashlib.sha256(text.encode()).digest()[:8]
        number = int.from_bytes(digest, "little", signed=True)
        program = _Program(path=str(path).encode(), profile=profile.encode(), **settings)
        self.library.accel_rl_upmem_add(number, ctypes.byref(program))
        return number

    def release(self) -> None:
        """Free the DPUs that this process holds."""
        self.library.accel_rl_upmem_release()

    def held(self) -> int:
        """Return the number of DPUs that this process holds."""
        return self.library.accel_rl_upmem_held()

    def report(self) -> LaunchReport:
        """Report DPU work since the process began."""
        return read_report(self.library.accel_rl_upmem_report)

    def translate(self, error: Exception) -> UpmemError | None:
        """Return the host's error behind an exception of jax, or None if there is none."""
        number = _NUMBER.search(str(error))
        return self.error(int(number[1])) if number else None

    def error(self, number: int) -> UpmemError | None:
        """Return the error with this number, or None if the host no longer keeps it."""
        found = _Error()
        message, log = (ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2))
        if not self.library.accel_rl_upmem_error(
            number, ctypes.byref(found), message, len(message), log, len(log)
        ):
            return None
        return BY_KIND[found.kind](
            message.value.decode(errors="replace"),
            status=found.status,
            dpu=None if found.dpu < 0 else found.dpu,
            log=log.value.decode(errors="replace"),
        )


_hosts: dict[Toolkit, Host] = {}  # at most one: handlers share names, libdpu has one set of ranks


def host(toolkit: Toolkit) -> Host:
    """Return the host library of a toolkit; load it on the first call."""
    if toolkit not in _hosts:
        for other in _hosts:
            raise UpmemError(
                f"this process runs DPUs with {other.folder}: start another for {toolkit.folder}"
            )
        _hosts[toolkit] = Host(toolkit)
    return _hosts[toolkit]


def loaded_host() -> Host | None:
    """Return the host library that this process has loaded, or None."""
    return next(iter(_hosts.values()), None)
