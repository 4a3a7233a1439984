"""Growth of time and memory with size, and fitted exponents beside the stated orders.

    python benchmarks/growth.py [--quick] [--only NAME] [--json PATH] [--plot PATH] [--seconds N]

`--only` may be given several times; with `--keep` the other cases of the report at PATH stay.
Each case runs in a process of its own. A case stops at the size that it has reached when its
seconds are over, or when the next size needs more memory than there is; the sizes left out are
recorded with the reason. Times are the least CPU time over rounds, but those of the replay server,
which are wall time. An exponent is fitted to logarithms by least squares over the upper half of the
sizes; a claim holds if it is at most that of the stated order plus a tolerance, which is larger
where buffers outgrow the processor's caches. Times too short for the clock, 0, are left out of the
fit. The report is written after every case; one of several runs says so.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import growth_data
import growth_replay
import growth_server
import growth_training
from common import Report, warn
from growth_fit import SYSTEM, Case, available_bytes, conclude, finder
from growth_plot import draw
from rich.console import Console

from accel_rl.report import results

PACKAGES = ("jax", "jaxlib", "numpy", "accel-rl")
CASES = {
    case.name: case
    for module in (growth_replay, growth_training, growth_data, growth_server)
    for case in module.CASES
}
GIB = 2**30
MOST_BYTES, SPARE_BYTES = 12 * GIB, 2 * GIB
QUICK_SECONDS, SECONDS = 10.0, 90.0
GRACE = 60.0  # seconds after its time until a case is killed


def run_case(case: Case, sizes: Sequence[int], seconds: float) -> None:
    """Measure sizes while there is time; print each as a line of JSON."""
    end, taken = time.monotonic() + seconds, 0.0
    for size in sizes:
        if time.monotonic() + 1.5 * taken > end:  # a next size takes longer than the last one
            print(json.dumps({"stopped": f"time over: {seconds:g} s"}), flush=True)
            return
        room = min(MOST_BYTES, available_bytes() - SPARE_BYTES)
        if case.needs(size) > room:
            needed = f"memory: {case.needs(size) / GIB:.1f} GiB, {room / GIB:.1f} free"
            print(json.dumps({"stopped": needed}), flush=True)
            return
        began = time.monotonic()
        found = {name: float(value) for name, value in case.measure(size).items()}
        taken = time.monotonic() - began
        print(json.dumps({"size": size, "values": found, "seconds": taken}), flush=True)


def measure(
    report: Report, case: Case, sizes: Sequence[int], seconds: float, console: Console
) -> None:
    """Run a case in a process; record what it has measured, and how it ended."""
    command = [sys.executable, __file__, "--case", case.name, "--seconds", str(seconds)]
    command += ["--sizes", ",".join(map(str, sizes))]
    units = {curve.metric: curve.unit for curve in case.curves}
    left, why = list(sizes), ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        killer = threading.Timer(seconds + GRACE, process.kill)
        killer.start()
        assert process.stdout is not None
        for text in process.stdout:
            line = json.loads(text)
            if "stopped" in line:
                why = line["stopped"]
                continue
            left.remove(line["size"])
            values = line["values"]
            for metric, value in values.items():
                report.add(case.at(line["size"]), SYSTEM, metric, units.get(metric, ""), [value])
            shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
            console.print(f"{case.at(line['size'])}: {shown} ({line['seconds']:.1f} s)")
        code = process.wait()
        killer.cancel()
    if code:
        why = f"the process ended with {code}"
    if left:
        why = why or "unknown"
        warn(f"{case.title}: {', '.join(f'{n:,}' for n in left)} {case.axis} left out: {why}")
    conclude(report, case, left, why)


def keep(report: Report, path: Path, names: Sequence[str]) -> None:
    """Take over the cases of an earlier report but for those of the given names."""
    earlier = results.read(path)
    titles = tuple(CASES[name].title for name in names)
    report.records += [each for each in earlier.records if not each.case.startswith(titles)]
    report.claims += [each for each in earlier.claims if not each.claim.startswith(titles)]
    report.head["part"] = "several runs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small sizes of the cases that start fast"
    )
    parser.add_argument("--only", action="append", choices=CASES, metavar="NAME", help="case")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw a picture (PNG) there")
    parser.add_argument("--seconds", type=float, metavar="N", help="of each case")
    parser.add_argument("--keep", action="store_true", help="keep other cases of the JSON at PATH")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)  # in a case's process
    parser.add_argument("--sizes", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    if options.case:
        run_case(CASES[options.case], [int(n) for n in options.sizes.split(",")], seconds)
        return
    part = ", ".join(options.only) if options.only else None
    report = Report(PACKAGES, "growth", quick=options.quick, seeds="0 of NumPy's", part=part)
    console = Console(width=180, highlight=False)
    if options.keep and options.json is not None and options.json.exists():
        keep(report, options.json, options.only or list(CASES))
    for name in options.only or CASES:
        case = CASES[name]
        sizes = case.quick if options.quick else case.sizes
        if sizes:
            share = 1.0 if options.quick else case.share
            measure(report, case, sizes, seconds * share, console)
        if options.json is not None:
            report.write(options.json)
    report.finish(options.json, console)
    if options.plot is not None:
        draw(list(CASES.values()), finder(report), options.plot)
        console.print(f"wrote {options.plot}")


if __name__ == "__main__":
    main()
