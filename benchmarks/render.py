"""The page of all recorded results, docs/benchmarks.md, from the newest record of each suite.

    python benchmarks/render.py [--check]

`--check` writes nothing, and ends with exit code 1 where the page is not what the records give.
"""

import argparse
import sys
from pathlib import Path

from suites import BENCHMARKS

from accel_rl.io import atomic_write
from accel_rl.report import benchmark, html, results
from accel_rl.report.page import number
from accel_rl.report.results import Claim, Results

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "benchmarks.md"

HEAD = """\
# Benchmark results

Made by `python benchmarks/render.py` from the newest record of each suite in
`benchmarks/results`; `make accept` runs the suites and writes both. Do not
edit. [The benchmarks' own page](../benchmarks/README.md) says how each is measured and what is not
flattering; `accel-rl report benchmarks/results` shows every figure of these records.

*Value* is what the target is for: mostly how many times as fast ours is as the rival, the median of
the ratios over interleaved rounds, which may differ from the ratio of the two figures beside it.
Where a target is not of two figures, these are empty. A target whose rival did not run is neither
held nor missed. Records whose date has no time name the commit that recorded them.
"""


def markdown(found: list[Results]) -> str:
    """Return the page of these results."""
    parts = [HEAD, summary(found)]
    if without := [name for name in BENCHMARKS if name not in {each.benchmark for each in found}]:
        parts.append(f"No record is kept yet of {', '.join(without)}.\n")
    parts += [section(each) for each in found]
    return "\n".join(parts)


def summary(found: list[Results]) -> str:
    """Return a line for each suite."""
    rows = ["| suite | date | held | missed | did not run |", "| --- | --- | --- | --- | --- |"]
    for each in found:
        verdicts = [claim.holds for claim in each.claims]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in (True, False, None))
        rows.append(
            f"| [{cell(each.title)}](#{anchor(each.title)}) | {each.date[:10]} | {counts} |"
        )
    return "\n".join(rows) + "\n"


def section(each: Results) -> str:
    """Return a suite's conditions and its targets."""
    lines = [f"## {each.title}", "", f"{benchmark.conditions(each)}", ""]
    lines += [
        "| what | ours | rival | value | target | | basis |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += ["| " + " | ".join(map(cell, row(each, claim))) + " |" for claim in each.claims]
    record = f"../benchmarks/results/{each.source}"
    lines += ["", f"{len(each.records)} figures are in [the record]({record}).", ""]
    return "\n".join(lines)


def row(each: Results, claim: Claim) -> tuple[str, ...]:
    """Return a claim as the table shows it."""
    verdict = {True: "held", False: "**missed**", None: "did not run"}[claim.holds]
    return (
        claim.claim,
        benchmark.figure(each, claim.ours) or "",
        benchmark.figure(each, claim.rival) or "",
        "" if claim.value is None else number(claim.value),
        f"{claim.sense} {claim.bound:.4g}",
        verdict,
        claim.basis,
    )


def cell(text: str) -> str:
    """Text within a table."""
    return text.replace("|", "\\|").replace("<", "\\<")


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def pages(folder: Path) -> list[Path]:
    """Write the pages of a folder's results, and says where they are."""
    found = results.newest(folder)
    written = []
    if found:
        written.append(html.write(folder / "report.html", benchmark.page_of(found, str(folder))))
    if folder.resolve() == RESULTS:
        with atomic_write(PAGE, "w") as file:
            file.write(markdown(found))
        written.append(PAGE)
    return written


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    text = markdown(results.newest(RESULTS))
    if not check:
        with atomic_write(PAGE, "w") as file:
            file.write(text)
        print(f"wrote {PAGE}")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what the records give: python benchmarks/render.py")
        sys.exit(1)


if __name__ == "__main__":
    main()
