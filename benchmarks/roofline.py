"""Roofline of the tabular update: measured on one core of this machine, modelled for one DPU.

Across, operations for each byte of logged rows that comes from memory; upwards, operations per
second. Tables stay in the caches (in WRAM on a DPU), so rows are all the traffic with memory.
Reference: Williams, Waterman and Patterson, "Roofline", Communications of the ACM 52(4), 2009.
"""

import ctypes
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from common import PER_CORE, Report, System, compile_c, interleave, warn
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from accel_rl.pim.cost import arithmetic_operations, roofline
from pim_emu.machine import load_machine

SOURCE = Path(__file__).with_suffix(".c")
CASE = "one core, ceilings"
MODELLED = "DPU (modelled)"
ARITHMETIC = "arithmetic per core-second"
BANDWIDTH = "bytes read per core-second"
ROW_BYTES = 16
_BUFFERS = {"16 KiB": 1 << 14, "256 KiB": 1 << 18, "8 MiB": 1 << 23, "256 MiB": 1 << 28}
_BEYOND_CACHES = "256 MiB"
_CHAINS, _LANES = 12, 16  # of roofline.c
_MARKERS = ("o", "s", "^", "D")


@dataclasses.dataclass(frozen=True)
class Point:
    """A system's record to be drawn: `replicas` tables learn from each row that is read."""

    environment: str
    num_actions: int
    case: str
    system: str
    replicas: int = 1

    @property
    def operations(self) -> int:
        """Operations of one update."""
        return arithmetic_operations("q_learning", self.num_actions)

    @property
    def intensity(self) -> float:
        """Operations for each byte of rows."""
        return self.operations * self.replicas / ROW_BYTES


def ceilings(report: Report, directory: Path, rounds: int) -> None:
    """Record what one core can do at most; nothing where there is no gcc."""
    try:
        library = compile_c(SOURCE, directory)
    except FileNotFoundError as error:
        warn(str(error))
        return
    steps = 200_000

    def arithmetic(name: str, operations: int) -> System:
        kernel = getattr(library, name)
        kernel.restype = ctypes.c_float
        return System(lambda: kernel(ctypes.c_int64(steps), ctypes.c_float(0.5)), operations)

    compute = {
        "fused multiply-add, SIMD": arithmetic("simd", steps * _CHAINS * _LANES * 2),
        "fused multiply-add, scalar": arithmetic("scalar", steps * _CHAINS * 2),
        "additions, each needing the last": arithmetic("dependent", steps),
    }
    for name, timing in interleave(compute, rounds).items():
        report.add(CASE, name, ARITHMETIC, "G op/s", 1e-9 / timing.cpu)

    largest = max(_BUFFERS.values())
    data = np.ones(largest // 4 + _LANES, np.float32)
    aligned = data.ctypes.data + -data.ctypes.data % 64
    kernel = library.read_vectors
    kernel.restype = ctypes.c_float

    def read(size: int) -> System:
        vectors, passes = ctypes.c_int64(size // 64), ctypes.c_int64(largest // size)
        return System(lambda: kernel(ctypes.c_void_p(aligned), vectors, passes), largest)

    reads = {f"reads of {name}": read(size) for name, size in _BUFFERS.items()}
    for name, timing in interleave(reads, rounds).items():
        report.add(CASE, name, BANDWIDTH, "GB/s", 1e-9 / timing.cpu)


def modelled_case(environment: str, numerics: str) -> str:
    """Return the name in records of a DPU's modelled rate."""
    return f"{environment}, one DPU, {numerics}, block 128, 16 tasklets"


def modelled(report: Report, environment: str, num_actions: int, numerics: Sequence[str]) -> None:
    """Record the modelled rate of one DPU."""
    machine = load_machine()
    for name in numerics:
        model = roofline(machine, "q_learning", name, num_actions)
        rate = [model.attained_updates / 1e6]
        case = modelled_case(environment, name)
        report.add(case, MODELLED, "modelled updates per second", "M updates/s", rate)


def plot(report: Report, path: Path, points: Sequence[Point], numerics: Sequence[str]) -> None:
    """Draw this run's roofline beside a DPU's modelled one, as PNG.

    Args:
      report: a finished run.
      path: the file.
      points: what to draw of the measured rates; those without a record are left out.
      numerics: those of the modelled side, for each environment of the points.
    """
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(11, 5), layout="constrained")
        left, right = figure.subplots(1, 2)
        environments = {point.environment: point.num_actions for point in points}
        markers = dict(zip(environments, _MARKERS, strict=False))
        for axes in (left, right):
            axes.set(xscale="log", yscale="log")
            axes.grid(which="major", alpha=0.3)
        _draw_measured(left, report, points, markers)
        _draw_modelled(right, environments, numerics, markers)
        figure.suptitle("Roofline of the Q-learning update")
        figure.savefig(path, dpi=150, format="png")


def _draw_measured(
    axes: Axes, report: Report, points: Sequence[Point], markers: dict[str, str]
) -> None:
    axes.set_title(f"one core, FP32, measured\n{report.machine['cpu']}")
    axes.set_xlabel(f"operations per byte of rows read ({ROW_BYTES} bytes a row)")
    axes.set_ylabel("G operations per core-second, measured")
    axes.set_xlim(0.1, 2.0 * max(point.intensity for point in points))
    systems = dict.fromkeys(point.system for point in points)
    colours = {system: f"C{k}" for k, system in enumerate(systems)}
    for point in points:
        record = report.find(point.case, point.system, PER_CORE)
        if record is not None:
            rate = record.value * point.operations / 1e3
            _mark(axes, point.intensity, rate, markers[point.environment], colours[point.system])
    memory = report.find(CASE, f"reads of {_BEYOND_CACHES}", BANDWIDTH)
    arithmetic = [r for r in report.records if r.case == CASE and r.metric == ARITHMETIC]
    if memory is not None and arithmetic:
        flat = {f"{r.system}: {r.value:.3g} G op/s": r.value for r in arithmetic}
        _draw_roof(axes, memory.value, f"memory {memory.value:.0f} GB/s", flat)
    _legend(axes, colours, markers, "upper left")


def _draw_modelled(
    axes: Axes, environments: dict[str, int], numerics: Sequence[str], markers: dict[str, str]
) -> None:
    machine = load_machine()
    axes.set_title(f"one DPU, modelled ({machine.name})\nblock 128, 16 tasklets")
    axes.set_xlabel("operations per byte of MRAM traffic (8 bytes a row), modelled")
    axes.set_ylabel("G operations per second, modelled")
    axes.set_xlim(0.1, 10)
    colours = {name: f"C{k}" for k, name in enumerate(numerics)}
    for name, colour in colours.items():
        for environment, num_actions in environments.items():
            model = roofline(machine, "q_learning", name, num_actions)
            rate = model.attained_operations / 1e9
            _mark(axes, model.operations_per_byte, rate, markers[environment], colour)
    bandwidth, instructions = model.mram_bandwidth / 1e9, model.instruction_ceiling / 1e9
    flat = {f"one instruction a cycle: {instructions:.3g} G/s": instructions}
    _draw_roof(axes, bandwidth, f"MRAM {bandwidth:.2g} GB/s", flat)
    _legend(axes, colours, markers, "lower left")


def _mark(axes: Axes, intensity: float, rate: float, marker: str, colour: str) -> None:
    axes.plot(intensity, rate, marker, color=colour, markersize=7, markeredgecolor="white")


def _draw_roof(axes: Axes, bandwidth: float, label: str, flat: dict[str, float]) -> None:
    """Return the slope up to the highest ceiling, and each ceiling from the slope on."""
    low, high = axes.get_xlim()
    top = max(flat.values())
    axes.plot([low, top / bandwidth], [low * bandwidth, top], color="black", linewidth=1)
    middle = np.sqrt(low * top / bandwidth)
    axes.annotate(
        label,
        (middle, middle * bandwidth),
        (6, -2),
        textcoords="offset points",
        va="top",
        fontsize=8,
    )
    for text, value in flat.items():
        style = "-" if value == top else "--"
        ends = [max(low, value / bandwidth), high]
        axes.plot(ends, [value, value], color="black", linewidth=1, linestyle=style)
        axes.annotate(
            text, (high, value), (-3, 3), textcoords="offset points", ha="right", fontsize=8
        )
    axes.set_ylim(top=1.6 * top)


def _legend(axes: Axes, colours: dict[str, str], markers: dict[str, str], place: Any) -> None:
    handles = [
        Line2D([], [], color=colour, marker="o", linestyle="", label=name)
        for name, colour in colours.items()
    ]
    handles += [
        Line2D([], [], color="grey", marker=marker, linestyle="", label=environment)
        for environment, marker in markers.items()
    ]
    axes.legend(handles=handles, fontsize=8, labelspacing=0.25, loc=place)
