"""DQN on CartPole with settings tuned for each kind of replay by the same search.

    python benchmarks/amper_tuned.py [--quick] [--json PATH] [--keep DIR]

`amper_learning.py` compares kinds of replay at settings that were chosen for uniform replay. Here
each kind is tuned: 16 trials of random settings (learning rate, target period, batch size, n-step,
alpha, beta), the same for all kinds but for those that a kind lacks, four seeds each. The trial
with the highest inter-quartile mean of final greedy returns, of equal ones that with the highest
returns while training, is trained with 32 other seeds, beside the untuned settings with the same
seeds. Tuned are replay buffers of 10,000 transitions; what was found is trained with 5,000 and
20,000 too. Figures and differences are as in `amper_learning.py`.

The report is written after each kind and size. `--keep` keeps the returns of all trainings in a
folder, and takes those that are there: a run that was stopped goes on.
"""

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path

import amper_learning as study
import jax
import numpy as np
from amper_learning_train import (
    AMPER_FR,
    AMPER_K,
    SAMPLERS,
    UNIFORM,
    Settings,
    Task,
    kept,
    train_seeds,
)
from common import Claim, Report
from rich.console import Console
from training_devices import use_all_cores

from accel_rl import plot

TASK = Task("CartPole-v1", 100_000, 500, -25.0)
SIZE, OTHER_SIZES = 10_000, (5_000, 20_000)
TUNING_SEEDS, TARGET = 4, 475.0
SHAPES = ((32, 1), (32, 3), (128, 1), (128, 3))  # batch size, n-step: one compilation each
TRIALS = 4  # of each shape
RATES, PERIODS = (1e-4, 1e-3), (5, 10, 20, 50, 100, 200)
ALPHAS, BETAS = (0.4, 0.5, 0.6, 0.7, 0.8), (0.4, 0.6, 0.8, 1.0)
PACKAGES = study.PACKAGES


def trials(shape: tuple[int, int], number: int) -> list[Settings]:
    """Return random settings of a shape, the same for every kind of replay."""
    rng = np.random.default_rng([*shape])
    low, high = np.log(RATES)
    return [
        Settings(
            *shape,
            float(np.exp(rng.uniform(low, high))),
            float(rng.choice(PERIODS)),
            float(rng.choice(ALPHAS)),
            float(rng.choice(BETAS)),
        )
        for _ in range(number)
    ]


def tune(
    task: Task,
    sampler: str,
    seeds: int,
    shapes: Sequence[tuple[int, int]],
    number: int,
    folder: Path | None,
) -> tuple[Settings, float]:
    """Return the best of so many trials of each shape, and its inter-quartile mean at the end."""
    found: list[tuple[float, float, Settings]] = []
    for shape in shapes:
        tried = trials(shape, number)
        # Seeds of a trial side by side; none is a seed of the reported trainings.
        keys = jax.numpy.tile(jax.random.split(jax.random.key(1), seeds), number)
        leaves = (np.repeat([each[n] for each in tried], seeds) for n in range(2, 6))
        learn = functools.partial(train_seeds, task, SIZE, sampler, keys, Settings(*shape, *leaves))
        learned = kept(folder, f"tuning-{task.steps}-{shape[0]}-{shape[1]}-{sampler}", learn)
        scores, areas = (
            plot.interquartile_mean(each.reshape(number, seeds), 1).tolist()
            for each in (learned.final, learned.area)
        )
        found += zip(scores, areas, tried, strict=True)
    best, _, settings = max(found)
    return settings, best


def run(
    report: Report,
    task: Task,
    shapes: Sequence[tuple[int, int]],
    number: int,
    sizes: Sequence[int],
    console: Console,
    path: Path | None,
    folder: Path | None,
) -> None:
    """Tune every kind, and train with what was found and without; `path` has what was found yet.

    Of trainings that are in `folder` the returns are read.
    """
    keys = jax.random.split(jax.random.key(0), task.seeds)
    tuned: study.Results = {}
    untuned: study.Results = {}
    chosen: dict[str, Settings] = {}

    def train(results: study.Results, size: int, system: str, settings: Settings) -> None:
        name = "tuned" if results is tuned else "untuned"
        learn = functools.partial(train_seeds, task, size, SAMPLERS[system], keys, settings)
        found = kept(folder, f"{name}-{task.steps}-{size}-{SAMPLERS[system]}", learn)
        results[task.environment, size, system] = found
        where = case(task, size, name)
        study.record(report, where, system, found)
        console.print(f"{where}, {system}: {float(plot.interquartile_mean(found.final)):.1f}")
        if path is not None:
            report.write(path)

    for system, sampler in SAMPLERS.items():
        began = time.perf_counter()
        settings, score = tune(task, sampler, TUNING_SEEDS, shapes, number, folder)
        chosen[system] = settings
        words = ", ".join(
            f"{name} {value:.3g}" for name, value in settings._asdict().items()
            if system != UNIFORM or name not in ("alpha", "beta")
        )  # fmt: skip
        for name, value in settings._asdict().items():
            where = case(task, SIZE, "tuned")
            report.add(where, system, f"setting: {name}", "", [value])
        console.print(f"{system}: {words}: {score:.1f}, {time.perf_counter() - began:.0f} s")
        train(tuned, SIZE, system, settings)
        train(untuned, SIZE, system, task.settings)
    for size in sizes:
        for system, settings in chosen.items():
            train(tuned, size, system, settings)
    for name, found in (("tuned", tuned), ("untuned", untuned)):
        for size in sorted({size for _, size, _ in found}):
            for system in (AMPER_K, AMPER_FR, UNIFORM):
                study.compare(report, case(task, size, name), system, found, task, size)


def case(task: Task, size: int, name: str) -> str:
    """Return the name of a case."""
    return f"{study.case_name(task, size)}, {name}"


def claims(report: Report, task: Task, sizes: Sequence[int]) -> None:
    """Claim that every kind learns when tuned, and that AMPER is near PER."""
    where = case(task, SIZE, "tuned")
    for system in SAMPLERS:
        found = report.find(where, system, study.FINAL)
        value = None if found is None else found.value
        holds = None if value is None else value >= TARGET
        text = f"{where}: {system}, inter-quartile mean at least {TARGET:g}"
        ours = report.place(where, system, study.FINAL)
        report.claims.append(Claim(text, value, TARGET, holds, ours=ours))
    for size in sorted((SIZE, *sizes)):
        study.claim_near_per(report, case(task, size, "tuned"), task.bound)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps, seeds and trials")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep returns there, and go on")
    options = parser.parse_args(arguments)
    use_all_cores()
    task, shapes, number, sizes = TASK, SHAPES, TRIALS, OTHER_SIZES
    if options.quick:
        task, shapes, number, sizes = task._replace(steps=4_000, seeds=8), SHAPES[-1:], 2, ()
    keys = f"JAX's key 0 for {task.seeds} seeds, key 1 for tuning"
    report = Report(PACKAGES, "amper_tuned", quick=options.quick, seeds=keys)
    console = Console(width=160, highlight=False)
    run(report, task, shapes, number, sizes, console, options.json, options.keep)
    claims(report, task, sizes)
    report.finish(options.json, console)


if __name__ == "__main__":
    main()
