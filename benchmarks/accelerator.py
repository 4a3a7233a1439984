"""Correctness and speed on an accelerator, beside the CPU and rivals: one command, nine minutes.

    python benchmarks/accelerator.py [--dry-run] [--only PART]... [--skip PART]... [--seconds S]
                                     [--out DIR]

From a plain checkout, under any Python that has jax 0.10 or 0.11 (for CUDA, ROCm, TPU or CPU),
flax, optax, chex, gymnax, six (which gymnax imports and does not require), pydantic and rich, with
what these require; nothing of ours is compiled, and no network is needed. flashbax, torchrl and
brax are measured where they import.
Each part runs in a process of its own for as many seconds as it is given. What it measured is kept
after every case, so that a part which crashes, hangs or is stopped keeps that; its claims are then
null, as is that of a case for which no time was left. `accelerator.json` is written after every
part, a page (`report.html`) and a picture (`accelerator.png`) at the end, where matplotlib and
jinja2 are there. `--dry-run` takes small sizes, to try all parts on a CPU: its speeds are no
accelerator's, and no targets are claimed of them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# A plain checkout has nothing installed: neither accel_rl nor pim_emu.
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(2, str(Path(__file__).resolve().parents[1]))
os.environ["ACCEL_RL_KERNELS"] = ""  # of the C kernels: they are a CPU's

import accelerator_correct as correct
import accelerator_fast as fast
import accelerator_training as training
import jax
from accelerator_run import Run
from common import BenchmarkRecord, Claim, Report
from rich.console import Console

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax", "flashbax", "torchrl", "brax")
# Of each part: seconds, and what it measures. Those that decide most come first.
PARTS: dict[str, tuple[int, Callable[[Run], None]]] = {
    "samplers": (60, correct.samplers),
    "searches": (30, correct.searches),
    "replay": (110, fast.replay_steps),
    "training-correct": (50, correct.training),
    "training": (110, training.by_seeds),
    "tabular-correct": (40, correct.tabular_training),
    "match": (30, fast.match),
    "tabular": (40, fast.tabular),
    "pipelined": (40, correct.pipelined),
    "compose": (30, fast.compose),
    "brax": (90, training.brax),  # has what the others leave
}
LIMIT = 540.0  # seconds, by default
DRY_RUN = 3.0  # times a part's seconds that a CPU is given
JSON, PICTURE = "accelerator.json", "accelerator.png"


def run_part(name: str, path: Path, dry_run: bool, seconds: float) -> None:
    """Run a part in this process, and write what it measures after every case."""
    report = Report(PACKAGES, "accelerator", quick=dry_run, part=name)
    device = jax.devices()[0]
    report.machine["accelerator"] = f"{device.device_kind} ({device.platform})"
    run = Run(report, path, dry_run, time.monotonic() + seconds)
    PARTS[name][1](run)
    run.keep()


def start_part(name: str, path: Path, dry_run: bool, seconds: float) -> str | None:
    """Run a part in a process of its own; say why it did not end well, or None."""
    command = [sys.executable, str(Path(__file__).resolve()), "--part", name, "--out", str(path)]
    command += ["--seconds", str(seconds), *(["--dry-run"] if dry_run else [])]
    child = subprocess.Popen(command, start_new_session=True)
    try:
        # It ends by itself between two cases; one that hangs is ended a little later.
        code = child.wait(seconds * 1.15 + 10)
        return None if code == 0 else f"ended with code {code}"
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds * 1.15 + 10:.0f} s"
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def merge(report: Report, path: Path) -> None:
    """Take a part's records and claims into the whole report."""
    part: Mapping[str, Any] = json.loads(path.read_text())
    report.machine |= {"accelerator": part["machine"]["accelerator"]}
    report.records += [BenchmarkRecord(**each) for each in part["records"]]
    report.claims += [Claim(**each) for each in part["claims"]]


def measure(report: Report, options: argparse.Namespace, console: Console) -> None:
    """Run the parts that are wanted, one after the other, and keep the whole after each."""
    until = time.monotonic() + options.seconds * (DRY_RUN if options.dry_run else 1)
    for name, (seconds, _) in PARTS.items():
        if name not in (options.only or PARTS) or name in options.skip:
            continue
        left = until - time.monotonic()
        if left < 5:
            report.claims.append(_failed(name, "no time was left"))
            continue
        began = time.monotonic()
        path = options.out / f"{name}.part"
        path.unlink(missing_ok=True)
        given = seconds * DRY_RUN if options.dry_run else seconds
        why = start_part(name, path, options.dry_run, min(given, left))
        if path.is_file():
            merge(report, path)
            path.unlink()
        if why is not None:
            report.claims.append(_failed(name, why))
        report.write(options.out / JSON)
        console.print(f"{name}: {why or 'done'}, {time.monotonic() - began:.0f} s", highlight=False)
    fast.add_shares(report)


def _failed(name: str, why: str) -> Claim:
    return Claim(f"{name}: {why}", None, 1.0, None)


def draw(report: Report, folder: Path, console: Console) -> None:
    """Draw the picture and write the page, where their packages are there."""
    try:
        import accelerator_plot

        accelerator_plot.plot(report, folder / PICTURE)
        from accel_rl.report import benchmark, html, results

        found = results.read(folder / JSON)
        html.write(folder / "report.html", benchmark.page_of([found], str(folder / JSON)))
    except ImportError as error:
        console.print(f"no page and picture: {error}", highlight=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="small sizes, for a CPU")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", default=[])
    parser.add_argument("--skip", action="append", choices=PARTS, metavar="PART", default=[])
    parser.add_argument("--seconds", type=float, default=LIMIT, help="of all parts together")
    parser.add_argument("--out", type=Path, metavar="DIR", default=Path("runs/accelerator"))
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        run_part(options.part, options.out, options.dry_run, options.seconds)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    console = Console(width=160)
    report = Report(PACKAGES, "accelerator", quick=options.dry_run)
    measure(report, options, console)
    report.finish(options.out / JSON, console)
    draw(report, options.out, console)


if __name__ == "__main__":
    main()
