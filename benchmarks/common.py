"""What the benchmarks share: timing in interleaved rounds, report, C compiler.

`accel_rl.report.results` says what a report's JSON holds.
"""

import contextlib
import ctypes
import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from accel_rl.io import atomic_write
from accel_rl.io.machine import describe_machine
from accel_rl.report.results import SCHEMA, Basis, BenchmarkRecord, Claim, Place

HERE = Path(__file__).resolve().parent
PER_CORE = "updates per core-second"
SAMPLE_SECONDS = 0.04  # of CPU time in one sample: enough to drown the clock and the call


class System(NamedTuple):
    """Something to time: returns when its work is done, `work` units of it (updates, steps)."""

    run: Callable[[], Any]
    work: float
    elsewhere: Callable[[int], tuple[float, float]] | None = None
    """elsewhere(repeats): CPU and wall seconds of a run in another process, by its own clocks."""

    def seconds(self, repeats: int) -> tuple[float, float]:
        """CPU and wall seconds of a run, the mean over repeats."""
        if self.elsewhere is not None:
            return self.elsewhere(repeats)
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(repeats):
            self.run()
        return (time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds for one unit of work in each round: CPU time over all threads, and wall time."""

    cpu: np.ndarray  # [rounds]
    wall: np.ndarray  # [rounds]


def interleave(systems: Mapping[str, System], rounds: int) -> dict[str, Timing]:
    """Time systems in turn, round after round, so that a slow spell of the machine hits all.

    Args:
      systems: by name. Each runs twice before timing starts, which pays for compilation; in a
        round, a short one runs many times.
      rounds: samples of each.

    Returns:
      Timings by name.
    """
    repeats = {}
    for name, system in systems.items():
        system.run()
        repeats[name] = max(1, round(SAMPLE_SECONDS / max(system.seconds(1)[0], 1e-6)))
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, system in systems.items():
            samples[name].append(system.seconds(repeats[name]))
    return {
        name: Timing(*(np.asarray(values) / systems[name].work).T)
        for name, values in samples.items()
    }


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Hold all threads of this process to one core, where the system allows it.

    For ratios to a rival that has one thread: work that two cores share costs more CPU time, for
    threads that wake and caches that both fill.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    _hold_to({max(cores)})
    try:
        yield
    finally:
        _hold_to(cores)


def _hold_to(cores: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(int(thread), cores)


class Report:
    """Records and claims of one run, and where they were made."""

    def __init__(
        self,
        packages: Sequence[str],
        benchmark: str = "",
        *,
        quick: bool | None = None,
        seeds: str | None = None,
        part: str | None = None,
    ) -> None:
        """Record time, commit, machine, its load before the run, and versions.

        Args:
          packages: of which versions are recorded.
          benchmark: the suite's name.
          quick: whether it runs with `--quick`.
          seeds: what random numbers come from, in words.
          part: which part of the suite runs, in words; None: all of it.
        """
        self.head = {
            "schema": SCHEMA,
            "benchmark": benchmark,
            "part": part,
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "quick": quick,
            "seeds": seeds,
        }
        self.machine = describe_machine()
        self.versions = _versions(packages)
        self.load = {"before": list(os.getloadavg())}
        self.records: list[BenchmarkRecord] = []
        self.claims: list[Claim] = []

    def add(
        self,
        case: str,
        system: str,
        metric: str,
        unit: str,
        values: Sequence[float] | np.ndarray,
        basis: Basis | None = None,
    ) -> None:
        """Record the median of the values and their quartiles.

        A figure whose case, system or metric has the word is modelled, unless `basis` says else.
        """
        low, middle, high = (float(x) for x in np.quantile(np.asarray(values), [0.25, 0.5, 0.75]))
        spread = (low, high) if np.size(values) > 1 else None
        if basis is None:
            basis = "modelled" if "modelled" in f"{case} {system} {metric}" else "measured"
        self.records.append(BenchmarkRecord(case, system, metric, unit, middle, spread, basis))

    def add_rates(
        self,
        case: str,
        timings: Mapping[str, Timing],
        what: str = "updates",
        wall: bool = False,
    ) -> None:
        """Record each system's rate per core-second, and with `wall` that per second as well."""
        unit = f"M {what}/s"
        for system, timing in timings.items():
            self.add(case, system, f"{what} per core-second", unit, 1e-6 / timing.cpu)
            if wall:
                self.add(case, system, f"{what} per second", unit, 1e-6 / timing.wall)

    def add_ratio(
        self,
        case: str,
        system: str,
        rival: str,
        timings: Mapping[str, Timing],
        metric: str = PER_CORE,
    ) -> None:
        """Record how many times the rival's rate the system reached; nothing if one did not run.

        Both are keys of `timings`, from one call of `interleave` so that rounds pair up; the metric
        is the rate that is compared, per core-second or per second.
        """
        if system in timings and rival in timings:
            clock = "cpu" if metric.endswith("core-second") else "wall"
            ratios = getattr(timings[rival], clock) / getattr(timings[system], clock)
            self.add(case, f"{system} / {rival}", f"ratio of {metric}", "", ratios)

    def find(self, case: str, system: str, metric: str) -> BenchmarkRecord | None:
        """Return the record of that name, or None."""
        wanted = (case, system, metric)
        found = [r for r in self.records if r.place == wanted]
        return found[0] if found else None

    def place(self, case: str, system: str, metric: str) -> Place | None:
        """Return the name of a record in claims, or None."""
        found = self.find(case, system, metric)
        return None if found is None else found.place

    def claim(
        self,
        claim: str,
        bound: float,
        cases: Sequence[str],
        system: str,
        rival: str,
        metric: str = PER_CORE,
    ) -> None:
        """Claim that in the best of the cases the system reaches `bound` times the rival's rate.

        The value is taken from this report's records. It is None, and so is the verdict, where any
        case lacks the rate of the system, that of the rival, or their ratio. Where there are
        several cases, the best is appended to the claim.
        """
        ratios = {}
        for case in cases:
            ran = self.find(case, system, metric) and self.find(case, rival, metric)
            ratio = self.find(case, f"{system} / {rival}", f"ratio of {metric}")
            if not (ran and ratio):
                self.claims.append(Claim(claim, None, bound, None))
                return
            ratios[case] = ratio.value
        best = max(ratios, key=lambda case: ratios[case])
        text = claim if len(cases) == 1 else f"{claim} (best: {best})"
        self.claims.append(
            Claim(
                text,
                ratios[best],
                bound,
                ratios[best] >= bound,
                ours=(best, system, metric),
                rival=(best, rival, metric),
            )
        )

    def finish(self, path: Path | None, console: Console) -> None:
        """Print the tables, and write the JSON to `path` if there is one."""
        self.load["after"] = list(os.getloadavg())
        console.print(_record_table(self.records), _claim_table(self.claims))
        for name in ("machine", "versions", "load"):
            text = f"{name}: {getattr(self, name)}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)
        if path is not None:
            self.write(path)
            console.print(f"wrote {path}", highlight=False, markup=False)

    def write(self, path: Path) -> None:
        """Write the JSON, whole or not at all."""
        with atomic_write(path, "w") as file:
            file.write(json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n")

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON holds it; what is claimed of modelled records is modelled."""
        modelled = {record.place for record in self.records if record.basis == "modelled"}
        claims = [
            dataclasses.replace(claim, basis="modelled")
            if {claim.ours, claim.rival} & modelled
            else claim
            for claim in self.claims
        ]
        return {
            **self.head,
            "machine": self.machine,
            "versions": self.versions,
            "load": self.load,
            "records": [dataclasses.asdict(record) for record in self.records],
            "claims": [dataclasses.asdict(claim) for claim in claims],
        }


def compile_c(
    source: Path,
    directory: Path,
    defines: Mapping[str, Any] | None = None,
    flags: Sequence[str] = (),
) -> ctypes.CDLL:
    """Compile one C file for this machine with `gcc -O3 -march=native`, and load it.

    Args:
      source: the file.
      directory: where to put the library, under a name that tells the defines.
      defines: macros and their values.
      flags: more of gcc's options.

    Raises:
      FileNotFoundError: there is no gcc.
      RuntimeError: gcc failed; the message holds what it said.
    """
    options = [f"-D{name}={value}" for name, value in (defines or {}).items()] + list(flags)
    library = directory / ("_".join([source.stem, *(x.strip("-D") for x in options)]) + ".so")
    command = ["gcc", "-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC", "-pthread"]
    command += [*options, "-o", str(library), str(source), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:  # not only absent: PATH may hold folders of others
        why = "gcc cannot be started: the C baselines cannot be compiled"
        raise FileNotFoundError(why) from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return ctypes.CDLL(str(library))


def commit() -> str:
    """Commit of the code, with a + if files differ from it; unknown without git or repository."""
    head = _output("git", "-C", str(HERE), "rev-parse", "HEAD")
    changes = _output("git", "-C", str(HERE), "status", "--porcelain", "--untracked-files=no")
    if head is None or changes is None:
        return "unknown"
    return head + ("+" if changes else "")


def _output(*command: str) -> str | None:
    """Run a program and return what it prints, or None if it cannot be started or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # PATH may hold folders of others
        return None


def _versions(packages: Sequence[str]) -> dict[str, str | None]:
    versions: dict[str, str | None] = dict.fromkeys(packages)
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    versions["gcc"] = _output("gcc", "-dumpfullversion")
    return {"python": platform.python_version(), **versions}


def _record_table(records: Sequence[BenchmarkRecord]) -> Table:
    table = Table("system", "metric", "value", "quartiles", "unit", title="Records")
    previous = None
    for record in records:
        if record.case != previous:
            table.add_section()
            table.add_row(f"[bold]{escape(record.case)}[/bold]")
        previous = record.case
        spread = "" if record.spread is None else " to ".join(map(_three_digits, record.spread))
        value = _three_digits(record.value)
        table.add_row(f"  {escape(record.system)}", record.metric, value, spread, record.unit)
    return table


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _claim_table(claims: Sequence[Claim]) -> Table:
    table = Table("claim", "value", "bound", "holds", title="Claims")
    for claim in claims:
        value = "rival did not run" if claim.value is None else _three_digits(claim.value)
        verdict = {True: "yes", False: "[bold]NO[/bold]", None: "null"}[claim.holds]
        bound = f"{claim.sense} {claim.bound:g}"
        table.add_row(escape(claim.claim), value, bound, verdict)
    return table


def warn(message: str) -> None:
    """Tell the user, on standard error, that something is left out."""
    print(f"WARNING: {message}", file=sys.stderr, flush=True)
