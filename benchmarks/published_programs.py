"""Build and run published UPMEM programs, unmodified, with the emulator.

Sources are not in this repository. Each suite of `published_suites.toml` is an option: the folder
of a checkout. It is copied, and programs are built and run in the copy. A program passes if it is
built, ends with status 0, and says, by the line that the suite's description has, that its results
are right.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import HERE, Report
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pim_emu.sdk import sdk_path
from pim_emu.toolchain.layout import SdkLayout

SUITES = HERE / "published_suites.toml"
STAGES = ("built", "ran", "own check passed")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a suite, with shell commands that run in its folder."""

    suite: str
    name: str
    folder: str
    build: str
    run: str
    passed: str  # regular expression that the output must match
    failed: str = "(?!)"  # and one that it must not match; this matches nothing


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Number of stages that a program passed, seconds of its run, and why it stopped."""

    program: Program
    stages: int
    seconds: float | None = None
    reason: str = ""


def read_suites(path: Path) -> dict[str, list[Program]]:
    """Read suites and their programs.

    Raises:
      ValueError: if a program lacks a command or has an unknown key.
    """
    suites: dict[str, list[Program]] = {}
    for suite, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        suites[suite] = []
        for name, own in entry["programs"].items():
            inherited = {key: entry[key] for key in ("build", "passed", "failed") if key in entry}
            try:
                program = Program(suite, name, **{"folder": name, **inherited, **own})
            except TypeError as error:
                raise ValueError(f"{path}: {suite}.{name}: {error}") from error
            suites[suite].append(program)
    return suites


def environment() -> dict[str, str]:
    """Return the environment with the emulator's SDK first, and its settings at defaults."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIM_EMU_", "UPMEM_", "MAKE")) or name == "PIM_EMU_CACHE"
    }
    return {**kept, **SdkLayout(sdk_path()).variables(kept)}


def try_program(program: Program, checkout: Path, timeout: float) -> Outcome:
    """Build and run one program below a copy of its suite's checkout."""
    folder = checkout / program.folder
    if not folder.is_dir():
        return Outcome(program, 0, reason=f"no folder {program.folder}")
    status, output, _ = _shell(program.build, folder, timeout)
    if status != 0:
        return Outcome(program, 0, reason=_reason("build", status, output))
    status, output, seconds = _shell(program.run, folder, timeout)
    if status != 0:
        return Outcome(program, 1, seconds, _reason("run", status, output))
    output = COLOUR.sub("", output)
    right = re.search(program.passed, output, re.MULTILINE)
    if not right or re.search(program.failed, output, re.MULTILINE):
        return Outcome(program, 2, seconds, _reason("check", status, output))
    return Outcome(program, 3, seconds)


def _shell(command: str, folder: Path, timeout: float) -> tuple[int | None, str, float]:
    """Return status (None: it took too long), output and seconds of a command and its children."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment(), text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the shell and what it started
        output, _ = process.communicate()
        return None, output, timeout
    return process.returncode, output, time.perf_counter() - begun


def _reason(stage: str, status: int | None, output: str) -> str:
    how = "took too long" if status is None else f"status {status}"
    lines = [line.strip() for line in COLOUR.sub("", output).splitlines() if line.strip()]
    said = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return f"{stage}: {how}: {said}"


def try_suites(
    programs: Mapping[str, Sequence[Program]], checkouts: Mapping[str, Path], timeout: float
) -> list[Outcome]:
    """Try the programs of suites in copies of their checkouts, one after the other."""
    outcomes = []
    for suite, checkout in checkouts.items():
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / checkout.resolve().name
            shutil.copytree(checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            outcomes += [try_program(program, copy, timeout) for program in programs[suite]]
    return outcomes


def record(report: Report, outcomes: Sequence[Outcome]) -> None:
    """Record each stage of each program as 1 or 0, and the seconds of its run."""
    for outcome in outcomes:
        case, system = outcome.program.suite, outcome.program.name
        for number, stage in enumerate(STAGES):
            report.add(case, system, stage, "", [float(outcome.stages > number)])
        if outcome.seconds is not None:
            report.add(case, system, "wall time of the run", "s", [outcome.seconds])


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return the table of programs and stages."""
    result = Table("suite", "program", *STAGES, "seconds")
    for outcome in outcomes:
        words = ["yes"] * outcome.stages + ["[bold]no[/bold]"] * (len(STAGES) > outcome.stages)
        words += [""] * (len(STAGES) - len(words))
        seconds = "" if outcome.seconds is None else f"{outcome.seconds:.1f}"
        names = escape(outcome.program.suite), escape(outcome.program.name)
        result.add_row(*names, *words, seconds)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a program does not pass its own check, 2 for wrong options."""
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--suites", type=Path, default=SUITES, help="descriptions of suites (TOML)")
    path = first.parse_known_args(arguments)[0].suites
    parser = argparse.ArgumentParser(
        description=__doc__, parents=[first], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    try:
        suites = read_suites(path)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for suite in suites:
        parser.add_argument(f"--{suite}", type=Path, metavar="DIR", help=f"checkout of {suite}")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", help="programs of these names")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds of a build or a run")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    options = vars(parser.parse_args(arguments))
    checkouts = {suite: options[suite] for suite in suites if options[suite] is not None}
    if not checkouts:
        parser.error(f"name a checkout: {', '.join(f'--{suite} DIR' for suite in suites)}")
    for suite, checkout in checkouts.items():
        if not checkout.is_dir():
            parser.error(f"--{suite}: no folder {checkout}")
    chosen = {
        suite: [
            one
            for one in suites[suite]
            if options["only"] in (None, []) or one.name in options["only"]
        ]
        for suite in checkouts
    }
    unknown = set(options["only"] or ()) - {one.name for some in chosen.values() for one in some}
    if unknown:
        parser.error(f"--only: no program {', '.join(sorted(unknown))} in {', '.join(checkouts)}")
    report = Report([], "published_programs", part=", ".join(checkouts))
    outcomes = try_suites(chosen, checkouts, options["timeout"])
    record(report, outcomes)
    console = Console()
    console.print(table(outcomes))
    for outcome in outcomes:
        if outcome.reason:
            text = f"{outcome.program.suite} {outcome.program.name}: {outcome.reason}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)
    if options["json"] is not None:
        report.write(options["json"])
    return int(any(outcome.stages < len(STAGES) for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
