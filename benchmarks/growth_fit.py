"""Growth curves: cases and their sizes, fitted exponents, and claims about them."""

import ctypes
import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Claim, Report

SYSTEM = "accel_rl"
LEAST_POINTS = 3
EXPONENT, REACHED = "fitted exponent", "largest size"
ORDERS: dict[str, Callable[[float], float]] = {
    "O(1)": lambda n: 1.0,
    "O(log n)": math.log,
    "O(n)": lambda n: n,
    "O(n^4)": lambda n: n**4,
}


class Curve(NamedTuple):
    """Metric of a case, and the order in which it may grow."""

    metric: str
    unit: str
    order: str  # a key of ORDERS
    tolerance: float = 0.15  # added to the exponent that the order has over the same sizes


class Case(NamedTuple):
    """Measurements at growing sizes, made in one process."""

    name: str
    title: str
    axis: str  # what the sizes count
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    measure: Callable[[int], Mapping[str, float]]  # values by metric at a size
    curves: tuple[Curve, ...]
    zeros: tuple[str, ...] = ()  # metrics that must be 0 at each size
    needs: Callable[[int], float] = lambda size: 0.0  # bytes of memory at a size
    share: float = 1.0  # of the seconds of a case

    def at(self, size: int) -> str:
        """Return the case of a size's records."""
        return f"{self.title}, {size:,} {self.axis}"


def upper_half(points: Sequence[float]) -> Sequence[float]:
    """Return the last half of points, the middle one included, and `LEAST_POINTS` or more."""
    return points[-max(LEAST_POINTS, math.ceil(len(points) / 2)) :]


def fitted_line(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float] | None:
    """Fit log(value) = a + b * log(size) by least squares over the upper half of the sizes.

    Args:
      sizes: ascending, above 0.
      values: above 0.

    Returns:
      b, the exponent, and a; None for fewer than `LEAST_POINTS` points.
    """
    if len(sizes) < LEAST_POINTS:
        return None
    x, y = (np.log(np.asarray(upper_half(each), float)) for each in (sizes, values))
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return slope, float(y.mean() - slope * x.mean())


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the exponent of `fitted_line`, or None."""
    line = fitted_line(sizes, values)
    return None if line is None else line[0]


def bound(curve: Curve, sizes: Sequence[float]) -> float:
    """Return the largest exponent that a curve may have over sizes."""
    of_order = exponent(sizes, [ORDERS[curve.order](size) for size in sizes])
    return curve.tolerance + (of_order or 0.0)


def points(
    find: Callable[[str, str, str], float | None], case: Case, metric: str
) -> tuple[list[int], list[float]]:
    """Return the sizes at which a metric was measured, and its values above 0."""
    every = sorted({*case.sizes, *case.quick})
    found = [(size, find(case.at(size), SYSTEM, metric)) for size in every]
    kept = [(size, value) for size, value in found if value is not None and value > 0]
    return [size for size, _ in kept], [value for _, value in kept]


def finder(report: Report) -> Callable[[str, str, str], float | None]:
    """Return a function from case, system and metric to a record's value or None."""
    values = {record.place: record.value for record in report.records}
    return lambda *place: values.get(place)


def conclude(report: Report, case: Case, unreached: Sequence[int], why: str) -> None:
    """Record exponents, the largest size and the sizes left out of a case; claim its orders."""
    find = finder(report)
    for curve in case.curves:
        sizes, values = points(find, case, curve.metric)
        found = exponent(sizes, values)
        place = (case.title, SYSTEM, f"{curve.metric}, {EXPONENT}")
        text = f"{case.title}: exponent of {curve.metric} over {case.axis}, {curve.order}"
        most = round(bound(curve, sizes), 3)
        if found is None:
            text += f" (null: measured at {len(sizes)} sizes only)"
            report.claims.append(Claim(text, None, most, None, sense="<="))
            continue
        report.add(*place, "", [found])
        report.claims.append(Claim(text, found, most, found <= most, sense="<=", ours=place))
    for metric in case.zeros:
        values = [find(case.at(size), SYSTEM, metric) for size in {*case.sizes, *case.quick}]
        values = [value for value in values if value is not None]
        if values:
            text = f"{case.title}: most {metric}, over all sizes"
            report.claims.append(Claim(text, max(values), 0.0, max(values) == 0, sense="<="))
    sizes, _ = points(find, case, case.curves[0].metric)
    if sizes:
        report.add(case.title, SYSTEM, REACHED, case.axis, [max(sizes)])
    if unreached:
        report.add(case.title, why, "sizes left out", "", [len(unreached)])


def least_seconds(call: Callable[[], object], rounds: int = 5) -> float:
    """Return the least CPU time of a call over rounds, after one that warms up."""
    call()
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken)


def resident(pid: int | str = "self", field: str = "VmRSS") -> int:
    """Return the bytes of memory of a process; `VmHWM` is the peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


def available_bytes() -> int:
    """Return the bytes of memory that the machine can give to a process now."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    raise KeyError("MemAvailable")


class Peak:
    """Peak of this process's memory since the object was made, above what it held then."""

    def __init__(self) -> None:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # freed pages that stay resident would hide growth
        Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM to VmRSS
        self._before = resident()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return resident(field="VmHWM") - self._before
