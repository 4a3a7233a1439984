"""What AMPER's draws are worth: DQN that learns with it, with PER and with uniform replay.

    python benchmarks/amper_learning.py [--host] [--quick] [--json PATH] [--plot DIR] [--keep DIR]

DQN on CartPole and Acrobot, or with `--host` on Gymnasium's LunarLander, with replay buffers of
5,000, 10,000 and 20,000 transitions, of four kinds. All seeds of a training run at once, a share on
each core, and all kinds have the same seeds, hyper-parameters and numbers of steps and updates.
Scored are the final policy, by the mean return of 100 greedy episodes, and the whole of learning,
by the mean return of the episodes while training. Figures are inter-quartile means over seeds, with
90 % bootstrap intervals; so are differences between two kinds, of which the seeds are resampled by
themselves.

The report is written after each case. `--keep` keeps the returns of each kind in a folder, and
takes those that are there: a run that was stopped goes on. A claim compares AMPER with PER: the
lower end of the interval of the difference of inter-quartile means of the final policies. `--plot`
draws curves into a folder.
"""

import argparse
import functools
import os
import time
from collections.abc import Sequence
from pathlib import Path

import amper_learning_plot
import jax
import numpy as np
from amper_learning_plot import CONFIDENCE
from amper_learning_train import (
    AMPER_FR,
    AMPER_K,
    PER,
    SAMPLERS,
    UNIFORM,
    Learned,
    Settings,
    Task,
    kept,
    train_seeds,
)
from common import BenchmarkRecord, Claim, Report
from rich.console import Console
from rich.table import Table
from training_devices import use_all_cores

from accel_rl import plot

SIZES, QUICK_SIZES = (5_000, 10_000, 20_000), (5_000,)
SEEDS, QUICK_SEEDS = 32, 8
FINAL, WHILE = "greedy return after training", "return while training"
DIFFERENCE = "difference of inter-quartile means: "
PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax")


TASKS = (
    Task("CartPole-v1", 100_000, 500, -25.0),
    Task("Acrobot-v1", 100_000, 500, -10.0),
)
LUNAR_LANDER = Task(
    "LunarLander-v3",
    200_000,
    1_000,
    -20.0,
    seeds=20,
    settings=Settings(batch_size=128, target_period=100.0),
    on_host=True,
)
HOST_PART = "LunarLander"
Results = dict[tuple[str, int, str], Learned]


def case_name(task: Task, size: int) -> str:
    """Return a case's name."""
    return f"{task.environment}, {task.steps:,} steps, replay {size:,}, {task.seeds} seeds"


def study(
    report: Report,
    tasks: Sequence[Task],
    sizes: Sequence[int],
    console: Console,
    path: Path | None = None,
    folder: Path | None = None,
) -> Results:
    """Train all, and record; the report so far goes to `path` after each case.

    Of kinds that are in `folder` the returns are read.
    """
    results: Results = {}
    for task in tasks:
        for size in sizes:
            case = case_name(task, size)
            for system, sampler in SAMPLERS.items():
                began = time.perf_counter()
                keys = jax.random.split(jax.random.key(0), task.seeds)
                learn = functools.partial(train_seeds, task, size, sampler, keys)
                found = kept(folder, f"{task.environment}-{task.seeds}-{size}-{sampler}", learn)
                results[task.environment, size, system] = found
                seconds = time.perf_counter() - began
                console.print(
                    f"{case}, {system}: {np.mean(found.final):.1f}, {seconds:.0f} s",
                    highlight=False,
                )
                record(report, case, system, found)
            for system in (AMPER_K, AMPER_FR, UNIFORM):
                compare(report, case, system, results, task, size)
            report.load["after"] = list(os.getloadavg())
            report.claims.clear()
            claims(report, tasks, sizes)
            if path is not None:
                report.write(path)
    return results


def record(report: Report, case: str, system: str, found: Learned) -> None:
    """Inter-quartile means with their intervals as spread."""
    for metric, values in ((FINAL, found.final), (WHILE, found.area)):
        interval = plot.bootstrap([values], confidence=CONFIDENCE)
        middle = float(plot.interquartile_mean(values))
        spread = (float(interval.low), float(interval.high))
        report.records.append(
            BenchmarkRecord(case, system, metric, "IQM, 90 % interval", middle, spread)
        )
    lowest, highest = float(found.final.min()), float(found.final.max())
    report.records.append(
        BenchmarkRecord(
            case,
            system,
            f"{FINAL}, mean and range",
            "",
            float(found.final.mean()),
            (lowest, highest),
        )
    )


def compare(
    report: Report, case: str, system: str, results: Results, task: Task, size: int
) -> None:
    """Return the difference from PER, with its interval as spread."""
    ours, per = (results[task.environment, size, name] for name in (system, PER))
    for metric, a, b in ((FINAL, ours.final, per.final), (WHILE, ours.area, per.area)):
        interval = plot.bootstrap(
            [a, b],
            lambda x, y: plot.interquartile_mean(x, 1) - plot.interquartile_mean(y, 1),
            confidence=CONFIDENCE,
            resamples=10_000,
        )
        difference = float(plot.interquartile_mean(a) - plot.interquartile_mean(b))
        spread = (float(interval.low), float(interval.high))
        report.records.append(
            BenchmarkRecord(
                case, f"{system} - {PER}", DIFFERENCE + metric, "90 % interval", difference, spread
            )
        )


def claims(report: Report, tasks: Sequence[Task], sizes: Sequence[int]) -> None:
    """AMPER loses to PER no more than the bound; null where a difference was not found."""
    for task in tasks:
        for size in sizes:
            claim_near_per(report, case_name(task, size), task.bound)


def claim_near_per(report: Report, case: str, bound: float) -> None:
    """Claim that in a case AMPER loses to PER no more than the bound."""
    for system in (AMPER_K, AMPER_FR):
        found = report.find(case, f"{system} - {PER}", DIFFERENCE + FINAL)
        value = None if found is None or found.spread is None else found.spread[0]
        text = f"{case}: lower end of {system} - {PER}"
        holds = None if value is None else value >= bound
        ours, per = (report.place(case, name, FINAL) for name in (system, PER))
        report.claims.append(Claim(text, value, bound, holds, ours=ours, rival=per))


def table(report: Report, tasks: Sequence[Task], sizes: Sequence[int]) -> Table:
    """Results by kind of replay, then differences from PER."""
    shown = Table(title=f"IQM of {FINAL} / {WHILE}, {tasks[0].seeds} seeds, 90 % intervals")
    for name in ("environment, replay", *SAMPLERS, f"{AMPER_K} - {PER}", f"{AMPER_FR} - {PER}"):
        shown.add_column(name, justify="right")
    for task in tasks:
        for size in sizes:
            case = case_name(task, size)
            cells = [_cell(report, case, name, "") for name in SAMPLERS]
            cells += [
                _cell(report, case, f"{name} - {PER}", DIFFERENCE) for name in (AMPER_K, AMPER_FR)
            ]
            shown.add_row(f"{task.environment}, {size:,}", *cells)
    return shown


def _cell(report: Report, case: str, system: str, prefix: str) -> str:
    lines = []
    for metric in (FINAL, WHILE):
        found = report.find(case, system, prefix + metric)
        if found is not None and found.spread is not None:
            lines.append(f"{found.value:.1f} ({found.spread[0]:.1f} to {found.spread[1]:.1f})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", action="store_true", help="LunarLander, on the host")
    parser.add_argument("--quick", action="store_true", help="one size, few seeds")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw pictures (PNG) into it")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep returns there, and go on")
    options = parser.parse_args(arguments)
    use_all_cores()
    tasks, sizes = (LUNAR_LANDER,) if options.host else TASKS, SIZES
    if options.quick:
        tasks, sizes = tuple(task._replace(seeds=QUICK_SEEDS) for task in tasks), QUICK_SIZES
    keys = f"JAX's key 0, split for {tasks[0].seeds} seeds"
    part = HOST_PART if options.host else None
    report = Report(PACKAGES, "amper_learning", quick=options.quick, seeds=keys, part=part)
    console = Console(width=180)
    results = study(report, tasks, sizes, console, options.json, options.keep)
    console.print(table(report, tasks, sizes))
    for claim in report.claims:
        console.print(claim, highlight=False)
    if options.json is not None:
        report.write(options.json)
        console.print(f"wrote {options.json}", highlight=False, markup=False)
    if options.plot is not None:
        options.plot.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            path = options.plot / f"amper_learning_{task.environment.partition('-')[0].lower()}.png"
            amper_learning_plot.draw(results, task.environment, sizes, path)
            console.print(f"wrote {path}", highlight=False, markup=False)


if __name__ == "__main__":
    main()
