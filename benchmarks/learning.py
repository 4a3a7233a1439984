"""Whether agents learn: the returns that trainings of many seeds must reach.

    python benchmarks/learning.py [--quick] [--minatar] [--only TEXT] [--json PATH] [--plot PATH]

Each task of `learning_tasks.py` is trained with all its seeds at once, a share on each core, and
each final policy plays 100 greedy episodes. Recorded are the seeds' mean returns and the wall time;
a claim compares the least or the mean over seeds with the task's bound. `--minatar` trains DQN on
Breakout too, which takes long; `--only` keeps tasks whose names hold the text. `--quick` trains two
seeds, most of them for fewer steps: a check that all runs, and its claims are about that. `--plot`
draws the returns of episodes while training.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import matplotlib
import numpy as np
from common import Claim, Report
from learning_curves import curve
from learning_tasks import (
    Task,
    actor_critics,
    at_random,
    control,
    minatar,
    quick,
    tables,
)
from matplotlib.figure import Figure
from rich.console import Console
from training_devices import use_all_cores

from accel_rl import plot, train

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax")
GREEDY, UNIT = "greedy return", "mean of 100 episodes"
RANDOM, RISE = "return of random actions", "last third of training over the middle third"
TIMES_RANDOM = 3.0


class Learned(NamedTuple):
    """What the seeds of a task reached."""

    steps: np.ndarray  # [N]
    curves: np.ndarray  # [seeds, N] returns of episodes while training
    final: np.ndarray  # [seeds] greedy returns


def train_task(task: Task, key: int = 0) -> Learned:
    """Train all seeds, and play."""
    program = task.program()
    run = train.fused(program, task.steps)
    play = train.evaluator(program.env, program.agent, max_steps=task.max_steps)

    def learn(key: jax.Array) -> Any:
        run_key, play_key = jax.random.split(key)
        state, metrics = run(run_key, **task.hyper)
        returns = play(program.agent.policy(state.agent), play_key)
        return {name: metrics[name] for name in ("steps", "episodes", "episode_return")}, returns

    keys = jax.random.split(jax.random.key(key), task.seeds)
    metrics, returns = jax.jit(train.over_seeds(learn))(keys)
    return Learned(*curve(metrics), np.asarray(returns, np.float64).mean(1))


def random_return(task: Task) -> float:
    """Mean return of 100 episodes of random actions."""
    program = task.program()
    play = train.evaluator(program.env, at_random(program.agent), max_steps=task.max_steps)
    state = program.agent.init(jax.random.key(0))
    return float(play(program.agent.policy(state), jax.random.key(1)).mean())


def record(report: Report, task: Task, found: Learned, seconds: float) -> None:
    """Return the seeds' returns: quartiles, least, mean."""
    case = f"{task.name}, {task.seeds} seeds"
    report.add(case, "accel_rl", GREEDY, UNIT, found.final)
    report.add(case, "accel_rl", f"{GREEDY}, least of the seeds", UNIT, [found.final.min()])
    report.add(case, "accel_rl", f"{GREEDY}, mean of the seeds", UNIT, [found.final.mean()])
    report.add(case, "accel_rl", "wall time, compilation included", "s", [seconds])


def claim(report: Report, task: Task) -> None:
    """Return the target of a task; null if it did not run."""
    case = f"{task.name}, {task.seeds} seeds"
    found = report.find(case, "accel_rl", f"{GREEDY}, {task.statistic}")
    value = None if found is None else found.value
    holds = None if value is None else value >= task.bound
    ours = None if found is None else found.place
    report.claims.append(Claim(f"{case}: {task.statistic}", value, task.bound, holds, ours=ours))


def claim_minatar(report: Report, task: Task) -> None:
    """Return a multiple of what random actions return, and a curve that rises to the end."""
    case = f"{task.name}, {task.seeds} seeds"
    found = report.find(case, "accel_rl", f"{GREEDY}, {task.statistic}")
    rival, rise = report.find(case, "random actions", RANDOM), report.find(case, "accel_rl", RISE)
    value = None if found is None or rival is None else found.value / rival.value
    text = f"{case}: {task.statistic} over the return of random actions"
    holds = None if value is None else value >= TIMES_RANDOM
    places = [None if each is None else each.place for each in (found, rival, rise)]
    report.claims.append(Claim(text, value, TIMES_RANDOM, holds, ours=places[0], rival=places[1]))
    value = None if rise is None else rise.value
    holds = None if value is None else value > 1
    text = f"{case}: {RISE}, above 1"
    report.claims.append(Claim(text, value, 1.0, holds, ours=places[2]))


def draw(results: dict[str, tuple[Task, Learned]], path: Path) -> None:
    """Curves of all tasks as PNG, a panel for each environment."""
    panels: dict[str, dict[str, plot.Curve]] = {}
    bounds = {}
    for task, found in results.values():
        curves = panels.setdefault(task.environment, {})
        curves[task.agent_name] = plot.Curve(found.steps, found.curves)
        bounds[task.environment] = task.bound
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context({"font.size": 8, "axes.titlesize": 9}):
        figure = Figure(figsize=(3.6 * columns, 2.7 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for ax in grid.flat[len(panels) :]:
            ax.remove()
        for ax, (name, curves) in zip(grid.flat, panels.items(), strict=False):
            reference = ("greedy, at least", bounds[name]) if bounds[name] else None
            plot.draw_learning(ax, curves, reference=reference)
            ax.set_title(name)
        figure.suptitle("Returns while training: IQM over seeds,\n95 % intervals")
        figure.savefig(path, dpi=90, format="png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, fewer steps")
    parser.add_argument("--minatar", action="store_true", help="train on Breakout too")
    parser.add_argument("--only", default="", metavar="TEXT", help="of the tasks' names")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw a picture there (PNG)")
    options = parser.parse_args(arguments)
    use_all_cores()
    part = f"tasks with {options.only}" if options.only else None
    seeds = "JAX's keys, split for the seeds of a task"
    report = Report(PACKAGES, "learning", quick=options.quick, seeds=seeds, part=part)
    console = Console(width=160)
    tasks = [*control(), *actor_critics(), *tables()]
    breakout = minatar()
    if options.minatar:
        tasks.append(breakout)
    tasks = [task for task in tasks if options.only in task.name]
    if not tasks:
        parser.error(f"no task's name holds {options.only!r}")
    if options.quick:
        tasks = quick(tasks)
    results = {}
    for task in tasks:
        began = time.perf_counter()
        found = train_task(task)
        seconds = time.perf_counter() - began
        results[task.name] = task, found
        record(report, task, found, seconds)
        mean, least = found.final.mean(), found.final.min()
        text = f"{task.name}, {task.seeds} seeds: mean {mean:.4g}, least {least:.4g}"
        console.print(f"{text}, {seconds:.0f} s", highlight=False)
        if task.environment == breakout.environment:
            case = f"{task.name}, {task.seeds} seeds"
            report.add(case, "random actions", RANDOM, UNIT, [random_return(task)])
            thirds = np.array_split(found.curves.mean(0), 3)
            report.add(case, "accel_rl", RISE, "", [thirds[2].mean() / thirds[1].mean()])
            claim_minatar(report, task)
        else:
            claim(report, task)
    report.finish(options.json, console)
    if options.plot is not None:
        draw(results, options.plot)
        console.print(f"wrote {options.plot}", highlight=False, markup=False)


if __name__ == "__main__":
    main()
