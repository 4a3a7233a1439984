"""Energy: joules of a modelled iteration from device power, and of a real run from counters.

PEARL's first version claims power efficiency (arXiv 2311.09445v1), but its artifact has no energy
model; the one here is ours. Joules measured by a `Meter` and joules computed from declared watts
have different types and are never added.

RAPL: the kernel's `Documentation/power/powercap/powercap.rst`. NVML: its manual, at
`nvmlDeviceGetTotalEnergyConsumption`, in millijoules, available since Volta.
"""

import dataclasses
import importlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from accel_rl.arguments import one_of, within

Status = Literal["measured", "declared"]

POWERCAP = Path("/sys/class/powercap")


@dataclasses.dataclass(frozen=True)
class Power:
    """Idle and active power of a device.

    Attributes:
      idle: watts while it does nothing, from 0 to `active`.
      active: watts while it runs a task, finite.
      status: "measured" on this device, or "declared" by whoever provides it.
      source: the measurement, or the data sheet.
    """

    idle: float
    active: float
    status: Status
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.idle <= self.active < math.inf:
            raise ValueError(
                f"0 <= idle <= active must hold in watts, got idle={self.idle}, "
                f"active={self.active}"
            )
        one_of("status", self.status, get_args(Status))


def power_status(power: Mapping[str, Power]) -> Status:
    """Return the common status of all figures, which joules computed from them have too."""
    by_status = {
        p.status: [d for d in power if power[d].status == p.status] for p in power.values()
    }
    if len(by_status) != 1:
        raise ValueError(
            "power must have one status for all devices, as measured and declared watts are not "
            f"added; got {by_status}"
        )
    return next(iter(by_status))


def iteration_joules(
    power: Mapping[str, Power], busy: Mapping[str, float], seconds: float
) -> float:
    """Return modelled joules: sum over devices of P_active busy + P_idle (seconds - busy).

    Args:
      power: of every device that is switched on, used or not; all measured or all declared.
      busy: seconds in which a device runs tasks; 0 if it is left out. Tasks that overlap on one
        device count once, so no device is busy for longer than the iteration.
      seconds: of the iteration.
    """
    power_status(power)
    within("seconds", seconds, "[0, inf)")
    for device, active in busy.items():
        one_of("busy device", device, power)
        within(f"busy[{device!r}]", active, "[0, inf)")
    total = 0.0
    for device, watts in power.items():
        active = min(busy.get(device, 0.0), seconds)
        total += watts.active * active + watts.idle * (seconds - active)
    return total


@dataclasses.dataclass(frozen=True)
class Reading:
    """Measured joules of one counter.

    Boundaries may nest (a package contains its cores), so readings must not be added.
    """

    boundary: str  # counted hardware and counter, such as "CPU package 0, RAPL"
    measured_joules: float  # over `seconds`
    seconds: float  # of wall-clock time


@dataclasses.dataclass(frozen=True)
class Unreadable:
    """Boundary without a reading, and the reason."""

    boundary: str
    reason: str


class _Counter:
    """Monotonic energy counter that may wrap around at `wraps_at`."""

    def __init__(
        self, boundary: str, read: Callable[[], Any], unit: float, wraps_at: int | None = None
    ) -> None:
        self.boundary, self._read, self._unit, self._wraps_at = boundary, read, unit, wraps_at
        self._last = int(read())

    def advance(self) -> float:
        """Return the joules since the last call, or since construction."""
        last, self._last = self._last, int(self._read())
        counts = self._last - last
        return (counts if self._wraps_at is None else counts % self._wraps_at) * self._unit


def _rapl(powercap: Path) -> Iterator[_Counter | Unreadable]:
    zones = sorted(powercap.glob("intel-rapl:*"))
    if not zones:
        yield Unreadable("CPU, RAPL", f"absent: {powercap} has no intel-rapl zone")
    for zone in zones:
        boundary = zone.name
        try:
            names = [(zone / "name").read_text().strip()]
            parent = zone.parent / zone.name.rpartition(":")[0]
            if parent.name != "intel-rapl":
                names.insert(0, (parent / "name").read_text().strip())
            boundary = " ".join(names).replace("package-", "CPU package ") + ", RAPL"
            wraps_at = int((zone / "max_energy_range_uj").read_text())
            yield _Counter(boundary, (zone / "energy_uj").read_text, 1e-6, wraps_at)
        except PermissionError as error:
            yield Unreadable(boundary, f"permission: {error}; since Linux 5.10 root must grant it")
        except (OSError, ValueError) as error:
            yield Unreadable(boundary, f"unreadable: {error}")


def _nvml(nvml: Any | None) -> Iterator[_Counter | Unreadable]:
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError:
            yield Unreadable("GPU, NVML", "absent: pynvml is not installed (nvidia-ml-py)")
            return
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        yield Unreadable("GPU, NVML", f"absent: {error}")
        return
    for index, handle in enumerate(handles):
        boundary = f"GPU {index}, NVML"
        try:
            read = partial(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
            yield _Counter(boundary, read, 1e-3)
        except nvml.NVMLError as error:
            yield Unreadable(boundary, f"no energy counter, which Volta brought: {error}")


class Meter:
    """Context manager that measures joules at every boundary that this machine lets us read.

    A thread polls the counters, because those of RAPL wrap around after minutes.

    Args:
      powercap: the kernel's folder of power zones.
      nvml: a module with `pynvml`'s functions; by default `pynvml`, if installed.
      period: seconds between two polls, above 0.

    Attributes:
      readings: after the block, one for each counter.
      unreadable: boundaries without a reading, and why, including those that failed on the way.
    """

    def __init__(
        self, powercap: Path = POWERCAP, nvml: Any | None = None, period: float = 1.0
    ) -> None:
        within("period", period, "(0, inf]")
        self._powercap, self._nvml, self._period = powercap, nvml, period
        self.readings: tuple[Reading, ...] = ()
        self.unreadable: tuple[Unreadable, ...] = ()

    def __enter__(self) -> "Meter":
        found = [*_rapl(self._powercap), *_nvml(self._nvml)]
        self.readings = ()
        self.unreadable = tuple(each for each in found if isinstance(each, Unreadable))
        counters = [each for each in found if not isinstance(each, Unreadable)]
        self._joules = dict.fromkeys(counters, 0.0)
        self._begin = time.perf_counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()
        seconds = time.perf_counter() - self._begin
        self.readings = tuple(
            Reading(counter.boundary, joules, seconds) for counter, joules in self._joules.items()
        )

    def _watch(self) -> None:
        while not self._ended.wait(self._period):
            self._look()

    def _look(self) -> None:
        for counter in list(self._joules):
            try:
                self._joules[counter] += counter.advance()
            except Exception as error:  # NVML's errors have no narrower base class
                del self._joules[counter]
                lost = Unreadable(counter.boundary, f"lost during the run: {error}")
                self.unreadable = (*self.unreadable, lost)
