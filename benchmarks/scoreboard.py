"""The scoreboard: what agents reach on known tasks, by their presets, beside other libraries.

    python benchmarks/scoreboard.py [--only TEXT] [--hours H] [--rivals PYTHON] [--list] [--page]

Runs the parts that have no file in `benchmarks/scoreboard` yet, one after the other, each as the
command that a user types (`accel-rl train ...`), or as `scoreboard_sb3.py` by the interpreter of
`--rivals`, and writes docs/scoreboard.md. A part takes up to an hour on two cores; one that was
stopped goes on from its checkpoint (`accel-rl resume`) at the next run. What did not run is empty
on the page. `--hours` starts no further part after so many; `--page` runs nothing.

A score is the mean of greedy episodes at the end. Wall and CPU time are of the whole command: ours
with compilation and evaluation, SB3's without its evaluation.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import commit
from scoreboard_parts import Part, parts, published

from accel_rl.io import atomic_write
from accel_rl.io.machine import describe_machine
from accel_rl.io.run_folder import RESULTS, made_with
from accel_rl.plot import bootstrap, interquartile_mean

HERE = Path(__file__).resolve().parent
KEPT, RUNS = HERE / "scoreboard", HERE.parent / "runs" / "scoreboard"
PAGE = HERE.parent / "docs" / "scoreboard.md"

HEAD = """\
# Scoreboard

Made by `python benchmarks/scoreboard.py`, from its files in `benchmarks/scoreboard`: what each
agent's presets reach, as a user gets it by the command in the last column. Do not edit. Scores are
means of greedy episodes after the last step: over seeds the inter-quartile mean with a 95 %
bootstrap interval, of three seeds the mean with the lowest and the highest. Empty: not run yet.
Times are of the slowest seed, or of all where seeds train at once, with what else the machine did:
compare CPU time. They are empty where a run was stopped for a while.
"""


def train(part: Part) -> dict[str, Any]:
    """Train a part by the command line, or go on with it; return its file's content."""
    folder = RUNS / part.name
    started = (folder / "run.json").is_file()
    words = ["resume", str(folder)] if started else ["train", *part.command, "--out", str(folder)]
    if not (folder / RESULTS).is_file():
        subprocess.run([sys.executable, "-m", "accel_rl", *words], check=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    scored = [row for row in rows if row["evaluation"] is not None]
    last = scored[-1].get("per_seed", {"evaluation": [scored[-1]["evaluation"]]})
    # Of what ran before it was stopped, and of the pause, nothing is known.
    unknown = {"wall_seconds": None, "cpu_seconds": None} if started else {}
    return {
        "scores": last["evaluation"],
        **course(scored),
        "command": f"accel-rl train {' '.join(part.command)}",
        "versions": made_with()["versions"],
        **unknown,
    }


def train_rival(part: Part, interpreter: str) -> dict[str, Any]:
    """Train a part by SB3; return its file's content."""
    file = RUNS / f"{part.name}.jsonl"
    script = str(HERE / "scoreboard_sb3.py")
    if not file.is_file():
        command = [interpreter, script, *part.command, "--out", str(file)]
        subprocess.run(command, check=True)
    first, *rows = map(json.loads, file.read_text().splitlines())
    return {
        "scores": [rows[-1]["evaluation"]],
        **course(rows),
        "cpu_seconds": rows[-1]["cpu_seconds"],
        "command": f"scoreboard_sb3.py {' '.join(part.command)}",
        "versions": first["versions"],
    }


def course(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the curve of rows with an evaluation, and the wall time to the last."""
    curve = [[row["steps"], row["evaluation"], round(row["seconds"], 1)] for row in rows]
    return {"curve": curve, "wall_seconds": rows[-1]["seconds"]}


def run(part: Part, interpreter: str | None) -> bool:
    """Run a part and keep its file; False where its library is absent."""
    if part.rival and interpreter is None:
        return False
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = train_rival(part, str(interpreter)) if part.rival else train(part)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found.setdefault("cpu_seconds", spent)
    found.update(commit=commit(), date=time.strftime("%Y-%m-%d"), machine=describe_machine())
    keep(part, found)
    return True


def keep(part: Part, found: Mapping[str, Any]) -> None:
    """Write a part's file."""
    KEPT.mkdir(exist_ok=True)
    with atomic_write(KEPT / f"{part.name}.json", "w") as file:
        file.write(json.dumps(found, indent=1) + "\n")


def kept(part: Part) -> dict[str, Any] | None:
    """Return a part's file, or None."""
    path = KEPT / f"{part.name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def score(scores: Sequence[float]) -> str:
    """Return the statistic of seeds' scores with its interval."""
    if len(scores) <= 3:
        return f"{np.mean(scores):,.1f} ({min(scores):,.1f} to {max(scores):,.1f})"
    interval = bootstrap([scores])
    middle = float(interquartile_mean(scores))
    return f"{middle:,.1f} ({float(interval.low):,.1f} to {float(interval.high):,.1f})"


def page() -> str:
    """Return the page of all parts."""
    lines = [HEAD]
    cases: dict[str, dict[tuple[str, str], list[Part]]] = {}
    for part in parts():
        family = cases.setdefault(part.family, {})
        family.setdefault((part.environment, part.system), []).append(part)
    for family, rows in cases.items():
        lines += [f"## {family}", ""]
        lines += ["| environment | agent | steps | seeds | score | wall s | CPU s | command |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for (environment, system), group in rows.items():
            lines.append(line(environment, system, group))
        lines.append("")
        theirs = [each for each in published() if each.family == family]
        if theirs:
            lines += ["Published by others, mostly for more steps, not run here:", ""]
            lines += ["| environment | agent | steps | score | source |", f"|{' --- |' * 5}"]
            for each in theirs:
                cells = each.environment, each.agent, f"{each.steps:,}", each.score, each.source
                lines.append(f"| {' | '.join(cells)} |")
            lines.append("")
    return "\n".join(lines)


def line(environment: str, system: str, group: Sequence[Part]) -> str:
    """Return the row of one agent in one environment."""
    found = [each for part in group if (each := kept(part)) is not None]
    if not found:
        command = "" if group[0].rival else f"`accel-rl train {' '.join(group[0].command)}`"
        return f"| {environment} | {system} | | | | | | {command} |"
    scores = [value for each in found for value in each["scores"]]
    times = []
    for name in ("wall_seconds", "cpu_seconds"):
        longest = max((each[name] for each in found if each[name] is not None), default=None)
        times.append("" if longest is None else f"{longest:,.0f}")
    steps, command = f"{found[0]['curve'][-1][0]:,}", f"`{found[0]['command']}`"
    cells = environment, system, steps, str(len(scores)), score(scores), *times, command
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="parts whose names hold this")
    parser.add_argument("--hours", type=float, default=1e9, metavar="H", help="start none after")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3")
    parser.add_argument("--list", action="store_true", help="list parts, and whether they ran")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    chosen = [part for part in parts() if options.only in part.name]
    if not chosen:
        parser.error(f"no part's name holds {options.only!r}")
    if options.list:
        for part in chosen:
            print(f"{'done' if kept(part) else '    '} {part.name}")
        return
    until = time.monotonic() + 3600 * options.hours
    for part in [] if options.page else chosen:
        if kept(part) is not None or time.monotonic() > until:
            continue
        done = run(part, options.rivals)
        print(f"{part.name}: {'done' if done else 'needs --rivals'}", flush=True)
    with atomic_write(PAGE, "w") as file:
        file.write(page())


if __name__ == "__main__":
    main()
