"""Speed and memory of the UPMEM emulator, against plain C that does the same work on arrays.

The streaming kernels read vectors that lie in MRAM, larger than the caches together; their rivals
are single loops of C, compiled as the kernels are (-O2), and as gcc can for this machine. The
emulator has one worker, and rates are per second of CPU time: a core against a core.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Report, System, interleave
from emulator_kernels import HISTOGRAM, TASKLETS, VECTOR_ADD, Emulated, Kernel, Plain
from rich.console import Console

import pim_emu

METRIC = "elements per core-second"
CHECKED, UNCHECKED, FAST = "as built by default", "checks off", "fast build, checks off"
SAME, NATIVE = "plain C, -O2", "plain C, -O3 -march=native"
EMULATED = {CHECKED: (False, True), UNCHECKED: (False, False), FAST: (True, False)}
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
    systems = {name: System(run, values.size) for name, run in {**emulated, **plain}.items()}
    timings = interleave(systems, rounds)
    report.add_rates(case, timings, "elements")
    for name in EMULATED:
        for rival in PLAIN:
            report.add_ratio(case, name, rival, timings, METRIC)
    if kernel is VECTOR_ADD:
        report.claim(f"checks on / {SAME}", 0.3, [case], CHECKED, SAME, METRIC)
        report.claim(f"checks off / {SAME}", 0.6, [case], FAST, SAME, METRIC)
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
    with tempfile.TemporaryDirectory() as directory:
        for kernel in (VECTOR_ADD, HISTOGRAM):
            streaming(report, kernel, Path(directory), 1 << 20, dpus, rounds)
    pim_emu.configure(checks=True)
    launches(report, 256, rounds)
    memory(report)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
