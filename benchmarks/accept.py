"""All benchmarks with their rivals, in full: what a release is accepted by. Takes hours.

    python benchmarks/accept.py [--rivals PYTHON] [--ray PYTHON] [--reverb PYTHON]
                                [--only NAME]... [--quick]

Runs one after the other and writes NAME-DATE.json for each, the benchmark's own report with the
commit it is of. Where one fails the others go on. Ends with all claims, and with exit code 1 if a
benchmark failed or a claim does not hold; a claim whose rival did not run is told, and no failure.
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

HERE = Path(__file__).resolve().parent
# With the options that name interpreters of rivals' environments, if they have one.
BENCHMARKS: dict[str, tuple[str, ...]] = {
    "tabular": (),
    "emulator": (),
    "dpu_kernels": (),
    "replay": (),
    "replay_core": (),
    "amper_study": (),
    "training": ("--rivals",),
    "compose": ("--rivals",),
    "replay_server": ("--ray", "--reverb"),
    "transports": (),
    "in_network": (),
    "apex_learning": (),
    "learning": (),
    "amper_learning": (),
}


def commit() -> str | None:
    """Of what is run, with "+" where files differ from it; None outside a repository."""
    found = []
    for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no")):
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True)
        if done.returncode:
            return None
        found.append(done.stdout.strip())
    return found[0] + ("+" if found[1] else "")


def run(name: str, path: Path, options: list[str], of: str | None) -> dict[str, Any] | None:
    """The report of a benchmark, which is also written with its commit; None if it failed."""
    command = [sys.executable, str(HERE / f"{name}.py"), "--json", str(path), *options]
    if subprocess.run(command, check=False).returncode or not path.exists():
        return None
    report = {"commit": of, **json.loads(path.read_text(encoding="utf-8"))}
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def table_of(reports: dict[str, dict[str, Any] | None]) -> tuple[Table, bool]:
    """All claims; and whether all benchmarks ran and no claim failed."""
    table, well = Table("benchmark", "claim", "value", "bound", "holds", title="Claims"), True
    for name, report in reports.items():
        if report is None:
            table.add_row(name, "[bold]FAILED[/bold]", "", "", "")
            well = False
            continue
        for claim in report["claims"]:
            verdict = {True: "yes", False: "[bold]NO[/bold]", None: "rival did not run"}
            value = "" if claim["value"] is None else f"{claim['value']:.3g}"
            text = escape(claim["claim"])
            table.add_row(name, text, value, f"{claim['bound']:g}", verdict[claim["holds"]])
            well = well and claim["holds"] is not False
    return table, well


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3 and SBX")
    parser.add_argument("--ray", metavar="PYTHON", help="interpreter that has ray and cpprb")
    parser.add_argument("--reverb", metavar="PYTHON", help="interpreter that has dm-reverb")
    parser.add_argument("--only", action="append", choices=sorted(BENCHMARKS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="as each benchmark's own")
    parser.add_argument("--out", type=Path, metavar="DIR", default=HERE / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    given = {"--rivals": options.rivals, "--ray": options.ray, "--reverb": options.reverb}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    reports: dict[str, dict[str, Any] | None] = {}
    of = commit()  # before results are written
    console = Console(width=160)
    for name, takes in BENCHMARKS.items():
        if options.only and name not in options.only:
            continue
        console.rule(name)
        words = ["--quick"] if options.quick else []
        for option in takes:
            words += [option, given[option]] if given[option] else []
        reports[name] = run(name, options.out / f"{name}-{today}.json", words, of)
    table, well = table_of(reports)
    console.print(table)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
