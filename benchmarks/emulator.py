"""Speed and memory of the UPMEM emulator, against plain C that does the same work on arrays.

The streaming kernels read vectors that lie in MRAM, larger than the caches together; their rivals
are single loops of C, compiled as the kernels are (-O2), and as gcc can for this machine. The
emulator has one worker, and rates are per second of CPU time: a core against a core. A launch that
computes is timed with one worker and with one for each core, by the clock on the wall.
"""

import argparse
import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Report, System, interleave, one_core
from emulator_cores import Launches
from emulator_kernels import HISTOGRAM, TASKLETS, VECTOR_ADD, VECTOR_COPIES, Emulated, Kernel, Plain
from rich.console import Console

import pim_emu

METRIC, WALL = "elements per core-second", "DPUs per second"
CHECKED, FAST = "as built by default", "fast build, checks off"
SAME, NATIVE = "plain C, -O2", "plain C, -O3 -march=native"
EMULATED = {CHECKED: (False, True), FAST: (True, False)}
COPIES = "copies alone, plain C"
PLAIN = {SAME: ("-O2", "-march=x86-64"), NATIVE: ()}


def streaming(
    report: Report, kernel: Kernel, directory: Path, elements: int, dpus: int, rounds: int
) -> None:
    """Record how many elements a second the kernel and plain C work through."""
    size = 4 * elements * dpus * kernel.vectors >> 20
    case = f"{kernel.name}, {dpus} DPUs, {size} MiB"
    values = np.random.default_rng(0).integers(2**32, size=(dpus, elements), dtype=np.uint32)
    emulated = {name: Emulated(kernel, values, *how) for name, how in EMULATED.items()}
    plain = {name: Plain(kernel, values, directory, flags) for name, flags in PLAIN.items()}
    if kernel is VECTOR_ADD:  # a loop of copies would become calls of memcpy, which are slower
        flags = ("-fno-tree-loop-distribute-patterns",)
        plain[COPIES] = Plain(VECTOR_COPIES, values, directory, flags)
    systems = {name: System(run, values.size) for name, run in {**emulated, **plain}.items()}
    timings = interleave(systems, rounds)
    report.add_rates(case, timings, "elements")
    for name in EMULATED:
        for rival in plain:
            report.add_ratio(case, name, rival, timings, METRIC)
    for rival in plain:
        bound = 1.0 if rival == COPIES else 0.6
        report.claim(f"{kernel.name}: fast build / {rival}", bound, [case], FAST, rival, METRIC)
    report.claim(f"{kernel.name}: as built / {SAME}", 0.4, [case], CHECKED, SAME, METRIC)
    for run in emulated.values():
        run.close()


def launches(report: Report, dpus: int, rounds: int) -> None:
    """Record what a launch costs a DPU that does nothing."""
    for tasklets in (1, 16):
        program = pim_emu.build("int main(void) {\n    return 0;\n}\n", tasklets=tasklets)
        with pim_emu.DpuSet(dpus, program) as dpu_set:
            timing = interleave({"launch": System(dpu_set.launch, dpus)}, rounds)["launch"]
        case = f"empty program, {dpus} DPUs"
        report.add(case, f"{tasklets} tasklets", "CPU time of a launch", "us/DPU", 1e6 * timing.cpu)


def all_cores(report: Report, rounds: int) -> None:
    """Record launches of a whole machine with one worker and with one for each core."""
    dpus, cores = pim_emu.load_machine().total_dpus, len(os.sched_getaffinity(0))
    case = f"{TASKLETS} tasklets that compute, {dpus} DPUs"
    with contextlib.ExitStack() as stack:
        systems = {}
        for workers in sorted({1, cores}):
            each = stack.enter_context(Launches(dpus, TASKLETS, workers))
            systems[f"workers: {workers}"] = System(each, dpus, each.seconds)
        timings = interleave(systems, rounds)
    for name, timing in timings.items():
        report.add(case, name, WALL, "k DPUs/s", 1e-3 / timing.wall)
    if cores > 1:
        several, one = f"workers: {cores}", "workers: 1"
        report.add_ratio(case, several, one, timings, WALL)
        report.claim(f"{cores} workers / 1", 0.9 * cores, [case], several, one, WALL)


def memory(report: Report) -> None:
    """Record what a whole machine of DPUs keeps resident, each with 64 KiB of MRAM written."""
    machine = pim_emu.load_machine()
    before = _resident()
    program = pim_emu.build(VECTOR_ADD.dpu, tasklets=TASKLETS)
    with pim_emu.DpuSet(machine.total_dpus, program) as dpu_set:
        dpu_set.broadcast("heap", np.zeros(1 << 14, np.uint32))
        dpu_set.broadcast("elements", np.uint32(1 << 13))
        dpu_set.launch()
        grown = (_resident() - before) / 2**20
    case = f"{machine.total_dpus} DPUs, 64 KiB of MRAM each"
    report.add(case, "emulator", "resident memory", "MiB", [grown])


def _resident() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller vectors")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    rounds, dpus = (7, 8) if options.quick else (21, 16)
    os.environ["PIM_EMU_WORKERS"] = "1"
    report = Report(["numpy"], "emulator", quick=options.quick, seeds="0 of NumPy's generator")
    with tempfile.TemporaryDirectory() as directory, one_core():
        for kernel in (VECTOR_ADD, HISTOGRAM):
            streaming(report, kernel, Path(directory), 1 << 20, dpus, rounds)
        pim_emu.configure(checks=True)
        launches(report, 256, rounds)
    memory(report)
    all_cores(report, rounds)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
