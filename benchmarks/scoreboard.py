"""The scoreboard: what agents reach on known tasks, by their presets, beside other libraries.

    python benchmarks/scoreboard.py [--only TEXT] [--hours H] [--rivals PYTHON] [--list] [--page]

Runs the parts that have no file in `benchmarks/scoreboard` yet, one after the other, each as the
command that a user types (`accel-rl train ...`), or as `scoreboard_sb3.py` by the interpreter of
`--rivals`, and writes docs/scoreboard.md. Most parts take less than an hour on two cores; three of
MinAtar's took 74 to 108 minutes beside other work, 40 to 51 of CPU time. A part that was stopped
goes on from its checkpoint (`accel-rl resume`) at the next run. What did not run is empty on the
page. `--hours` starts no further part after so many; `--page` runs nothing.

A score is the mean of greedy episodes at the end. Wall and CPU time are of the whole command for
ours, with compilation and evaluation, and of SB3's training alone.
"""

import argparse
import json
import os
import re
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
bootstrap interval, of three seeds the mean with the lowest and the highest. Rows without a score
have not run yet, for want of machine time: a part can take more than an hour on two cores.

Times are of the slowest seed, or of all where seeds train at once, with what else the machine did:
compare CPU time, and of the same cores, which are of an AMD EPYC or an Intel Xeon. Ours include
compilation and evaluation, SB3's neither its start nor evaluation. They are empty where a seed's
are not known, as when it was stopped for a while.

The threshold of an environment in a table is three quarters of the way from the lowest evaluation
in its rows to the highest one at the end, by means over seeds. Beside it is the time of the first
evaluation that reaches it; there is one after each tenth of the steps. It is empty where none does.
Runs before 29 November 2026 recorded no CPU time of evaluations.

SB3 runs on this machine with the hyper-parameters of our presets; its Pendulum is Gymnasium's, its
Breakout-MinAtar the same gymnax game as ours, and its DQN has a Huber loss and no double learning.
CleanRL's scores are published ones only: its newest package, 1.2.0, pins gym 0.23, which has no v5
of MuJoCo, and needs a Python below 3.11. MinAtar's paper shows its scores in pictures alone, and no
table of another DQN's after a million steps was found. Brax has no SB3 beside it, as SB3 steps
environments on the host, and no published score after 100,000 steps is known to us.
"""
COLUMNS = (
    "environment", "agent", "steps", "seeds", "score", "wall s", "CPU s",
    "threshold", "wall s to it", "CPU s to it", "cores", "command",
)  # fmt: skip


def train(part: Part) -> dict[str, Any]:
    """Train a part by the command line, or go on with it; return its file's content."""
    folder = RUNS / part.name
    started = (folder / "run.json").is_file()
    words = ["resume", str(folder)] if started else ["train", *part.command, "--out", str(folder)]
    metrics, spent = folder / "metrics.jsonl", []
    if not (folder / RESULTS).is_file():
        spent = follow([sys.executable, "-m", "accel_rl", *words], metrics)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    if not started:
        for row, seconds in zip(rows, spent, strict=True):
            row["cpu_seconds"] = seconds
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


def follow(command: Sequence[str], metrics: Path) -> list[float]:
    """Run a command; return its CPU seconds at each line of `metrics`, to within half a second."""
    spent: list[float] = []
    with subprocess.Popen(command) as process:
        running = True
        while running:
            time.sleep(0.5)
            # The kernel keeps the times of an ended process until `poll` has seen the end.
            times = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
            seconds = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
            running = process.poll() is None
            lines = metrics.read_bytes().count(b"\n") if metrics.is_file() else 0
            spent += [seconds] * (lines - len(spent))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return spent


def course(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the curve of rows with an evaluation, and the wall time to the last."""
    curve = [
        [
            row["steps"],
            row["evaluation"],
            round(row["seconds"], 1),
            round(row["cpu_seconds"], 1) if "cpu_seconds" in row else None,
        ]
        for row in rows
    ]
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
        lines += [f"## {family}", "", f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
        found = {case: list(filter(None, map(kept, group))) for case, group in rows.items()}
        for (environment, system), group in rows.items():
            if here := found[environment, system]:
                others = [found[case] for case in rows if case[0] == environment and found[case]]
                lines.append(line(environment, system, here, threshold(others)))
            else:
                command = "" if group[0].rival else f"`accel-rl train {' '.join(group[0].command)}`"
                lines.append(f"| {environment} | {system} |{' |' * (len(COLUMNS) - 3)} {command} |")
        lines.append("")
        theirs = [each for each in published() if each.family == family]
        if theirs:
            lines += ["Published by others, mostly for more steps:", ""]
            lines += ["| environment | agent | steps | score | source |", f"|{' --- |' * 5}"]
            for each in theirs:
                steps = "not said" if each.steps is None else f"{each.steps:,}"
                cells = each.environment, each.agent, steps, each.score, each.source
                lines.append(f"| {' | '.join(cells)} |")
            lines.append("")
    return "\n".join(lines)


def mean_curve(found: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return rows of a case's steps, mean evaluation, and the slowest part's wall and CPU seconds.

    Times that are not known are NaN.
    """
    curves = np.array([[[*row, None][:4] for row in each["curve"]] for each in found], np.float64)
    if any(each["wall_seconds"] is None for each in found):
        curves[..., 2:] = np.nan
    return np.concatenate([curves[..., :2].mean(0), curves[..., 2:].max(0)], axis=1)


def threshold(cases: Sequence[Sequence[Mapping[str, Any]]]) -> float:
    """Return the score to reach in an environment: 75 % of the way to the best last evaluation."""
    curves = [mean_curve(found) for found in cases]
    lowest = min(curve[:, 1].min() for curve in curves)
    return float(lowest + 0.75 * (max(curve[-1, 1] for curve in curves) - lowest))


def cores(found: Sequence[Mapping[str, Any]]) -> str:
    """Return how many cores a case's parts had, and of whose processors."""
    machines = (each["machine"] for each in found)
    kinds = {f"{each['cores']} {re.split('[ (]', each['cpu'])[0]}" for each in machines}
    return ", ".join(sorted(kinds))


def line(
    environment: str, system: str, found: Sequence[Mapping[str, Any]], threshold: float
) -> str:
    """Return the row of one agent in one environment."""
    curve = mean_curve(found)
    reached = np.append(curve[curve[:, 1] >= threshold], [[np.nan] * 4], axis=0)[0]
    spent = [[each["wall_seconds"], each["cpu_seconds"]] for each in found]
    times = [*np.array(spent, np.float64).max(0), *reached[2:]]  # None is NaN
    wall, cpu, *rest = ("" if np.isnan(each) else f"{each:,.0f}" for each in times)
    scores = [value for each in found for value in each["scores"]]
    cells = (
        environment, system, f"{curve[-1, 0]:,.0f}", str(len(scores)), score(scores), wall, cpu,
        f"{threshold:,.1f}", *rest, cores(found), f"`{found[0]['command']}`",
    )  # fmt: skip
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
