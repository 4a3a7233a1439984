"""All benchmarks with their rivals: in full, what a release is accepted by, which takes hours.

    python benchmarks/accept.py [--quick] [--only NAME]... [--out DIR]
                                [--rivals PYTHON] [--ray PYTHON] [--reverb PYTHON]

Runs one after the other and writes NAME-DATE.json for each, then the pages of all that is in the
folder: `report.html` there, and for `results` also `docs/benchmarks.md`. Rivals that need an
environment of their own are taken from `build`, where `make rivals` puts them, unless an
interpreter is named. Where a benchmark fails the others go on. Ends with all claims and with exit
code 1 if a benchmark failed or, in a full run, a claim does not hold: few rounds on a machine that
does other things prove nothing. A claim whose rival did not run is told, and no failure.
"""

import argparse
import datetime
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import common
import render
import rivals
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from suites import BENCHMARKS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def run(name: str, path: Path, options: list[str], of: str | None) -> dict[str, Any] | None:
    """Return a benchmark's report, after writing it with its commit; None if it failed."""
    draft = path.with_suffix(".draft")  # a failed run leaves an earlier one of the day as it was
    command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(draft), *options]
    try:
        if subprocess.run(command, check=False).returncode or not draft.exists():
            return None
        report = {**json.loads(draft.read_text(encoding="utf-8")), "commit": of}
        draft.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return report


def table_of(reports: dict[str, dict[str, Any] | None]) -> tuple[Table, bool, bool]:
    """All claims; whether all benchmarks ran; and whether no claim failed."""
    table = Table("benchmark", "claim", "value", "bound", "holds", title="Claims")
    held = True
    for name, report in reports.items():
        if report is None:
            table.add_row(name, "[bold]FAILED[/bold]", "", "", "")
            continue
        for claim in report["claims"]:
            verdict = {True: "yes", False: "[bold]NO[/bold]", None: "rival did not run"}
            value = "" if claim["value"] is None else f"{claim['value']:.3g}"
            text, bound = escape(claim["claim"]), f"{claim['sense']} {claim['bound']:g}"
            table.add_row(name, text, value, bound, verdict[claim["holds"]])
            held = held and claim["holds"] is not False
    return table, None not in reports.values(), held


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", metavar="PYTHON", help="one with SB3, SBX, torchrl")
    parser.add_argument("--ray", metavar="PYTHON", help="one with ray and cpprb")
    parser.add_argument("--reverb", metavar="PYTHON", help="one with dm-reverb")
    parser.add_argument("--only", action="append", choices=sorted(BENCHMARKS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="as each benchmark's own")
    parser.add_argument("--out", type=Path, metavar="DIR", default=RESULTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    given = {"--rivals": options.rivals, "--ray": options.ray, "--reverb": options.reverb}
    interpreters = {name: python or rivals.interpreter(name) for name, python in given.items()}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    reports: dict[str, dict[str, Any] | None] = {}
    of = common.commit()  # before results are written
    console, began = Console(width=160), time.perf_counter()
    for name, takes in BENCHMARKS.items():
        if name not in (options.only or BENCHMARKS):
            continue
        console.rule(name)
        words = ["--quick"] if options.quick else []
        for option in takes:
            words += [option, interpreters[option]] if interpreters[option] else []
        started = time.perf_counter()
        reports[name] = run(name, options.out / f"{name}-{today}.json", words, of)
        console.print(f"{name}: {time.perf_counter() - started:.0f} s", highlight=False)
    table, ran, held = table_of(reports)
    console.print(table)
    for path in render.pages(options.out):
        console.print(f"wrote {path}", highlight=False, markup=False)
    console.print(f"{time.perf_counter() - began:.0f} s in all", highlight=False)
    sys.exit(0 if ran and (held or options.quick) else 1)


if __name__ == "__main__":
    main()
