"""How fast deep agents train: against the plain loop that users write, and against SB3 and SBX.

    python benchmarks/training.py [--quick] [--rivals PYTHON] [--json PATH] [--plot PATH]
    python benchmarks/training.py --one-thread [--quick] [--json PATH]

DQN on CartPole in the settings of `training_settings.py`, with equal hyper-parameters and equal
work: all systems collect, sample and update as often, with networks of the same size. Ours runs as
`train.fused`, compiled; for several seeds through `train.over_seeds`, a share of them on each of as
many devices as there are cores. The plain loop is `training_plain.py`, with `vmap` over seeds. SB3
and SBX have an environment of their own (`training_sb3.py` says how to make it); the benchmark asks
its interpreter, PYTHON, to train in the same rounds. Without one their claims are null.

Compilation is excluded from rates and recorded by itself, from an empty persistent cache and from a
filled one. Rates are of wall time and of CPU time over all threads, medians over interleaved
rounds; claims compare wall times. Beside stand the share of what BLAS, measured in the same run,
would need for the products of matrices alone, and what was learned for the same work. `--plot`
draws the latter.

`--one-thread` times one seed alone, ours and the plain loop's, where XLA has one thread to compute
with (PJRT_NPROC=1): handing the parts of a small network's update from thread to thread costs more
than it saves.
"""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax
import training_cases as cases
import training_limit
import training_plot
from common import Claim, Report
from rich.console import Console
from training_devices import use_all_cores
from training_rivals import Rivals
from training_settings import SETTINGS

from accel_rl.io.machine import core_count

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax")
# Environment steps of a seed, by setting and number of seeds: about a second's work.
STEPS = {
    ("A", 1): 50_000,
    ("A", 16): 10_000,
    ("A", 64): 5_000,
    ("B", 1): 10_000,
    ("B", 16): 4_000,
    ("S", 1): 20_000,
    ("S", 16): 10_000,
    ("S", 64): 5_000,
    ("R", 1): 50_000,
}
RIVAL_STEPS = {"A": 5_000, "B": 3_000, "S": 3_000}
LEARNING = {"A": 500_000, "B": 50_000, "S": 50_000}
QUICK_LEARNING = {"A": 50_000, "B": 10_000, "S": 10_000}
BOUNDS = {("A", 1): 1.15, ("B", 1): 1.15, ("S", 1): 1.4}  # over the plain loop; more seeds: 1.5
RIVAL_BOUNDS = {"A": 9.0, "B": 10.0, "S": 40.0}  # over SB3
SHARE_OF_UNIFORM = 1 / 1.3
SHARE_OF_WHOLE = 0.95
ONE_THREAD_PART = "one seed, one thread"


def prepare(cache: str, one_thread: bool = False) -> None:
    """Set a host device for each core, or one thread, and a persistent cache of this run's own."""
    if one_thread:
        os.environ["PJRT_NPROC"] = "1"  # read when JAX first computes
    else:
        use_all_cores()
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def claims(report: Report) -> None:
    """Return the targets of this benchmark."""
    ours, wall = cases.OURS, cases.WALL
    text = "{}: times as fast as {}"
    for name, seeds in STEPS:
        case = SETTINGS[name].title(seeds)
        if seeds > 1 or (name, seeds) in BOUNDS:
            bound = BOUNDS.get((name, seeds), 1.5)
            claim = text.format(case, f"the {cases.PLAIN}")
            report.claim(claim, bound, [case], ours, cases.PLAIN, wall)
    least = [
        report.find(SETTINGS[name].title(seeds), f"{ours} / {cases.PLAIN}", f"ratio of {wall}")
        for name, seeds in STEPS
    ]
    known = [record for record in least if record is not None]
    claim, worst = f"in the worst case, times as fast as the {cases.PLAIN}", None
    if len(known) == len(STEPS):
        worst = min(known, key=lambda record: record.value)
    value = None if worst is None else worst.value
    places = [
        None if worst is None else report.place(worst.case, name, wall)
        for name in (ours, cases.PLAIN)
    ]
    holds = None if value is None else value >= 1
    report.claims.append(Claim(claim, value, 1.0, holds, ours=places[0], rival=places[1]))
    for name, bound in RIVAL_BOUNDS.items():
        case = SETTINGS[name].title(1)
        report.claim(text.format(case, "SB3"), bound, [case], ours, "SB3", wall)
    for sampler in cases.SAMPLERS[1:]:
        claim = f"{cases.SAMPLER_CASE}: rate with {sampler} over that with uniform, 1 / 1.3"
        case = [cases.SAMPLER_CASE]
        report.claim(claim, SHARE_OF_UNIFORM, case, sampler, cases.SAMPLERS[0], wall)
    claim = f"{cases.CHUNK_CASE}: rate over that of the {cases.WHOLE}"
    report.claim(claim, SHARE_OF_WHOLE, [cases.CHUNK_CASE], cases.CHUNKED, cases.WHOLE, wall)


def one_thread(report: Report, quick: bool, console: Console) -> None:
    """Time one seed in each setting where XLA has one thread."""
    run = cases.Run(report, rounds=3 if quick else 11)
    for name, setting in SETTINGS.items():
        case = setting.title(1)
        console.print(f"{case} ...", highlight=False)
        cases.speed(run, setting, 1, STEPS[name, 1])
        claim = f"{case}, one thread: times as fast as the {cases.PLAIN}"
        report.claim(claim, 1.0, [case], cases.OURS, cases.PLAIN, cases.WALL)


def measure(
    report: Report, quick: bool, python: str | None, plot: Path | None, console: Console
) -> None:
    """All cases."""
    with Rivals(python) as rivals:
        report.versions.update({f"rivals' {k}": v for k, v in rivals.versions.items()})
        rounds = 3 if quick else 11
        run = cases.Run(report, rounds, rivals, training_limit.peak(report, rounds))
        for (name, seeds), steps in STEPS.items():
            console.print(f"{SETTINGS[name].title(seeds)} ...", highlight=False)
            rival_steps = RIVAL_STEPS.get(name, 0) if seeds == 1 else 0
            cases.speed(run, SETTINGS[name], seeds, steps, rival_steps)
        cases.samplers(run, SETTINGS["B"], STEPS["B", 1])
        cases.chunks(run, SETTINGS["A"], seconds=1.0, count=3)
        curves = {}
        seeds = core_count() * (1 if quick else 8)
        for name, steps in (QUICK_LEARNING if quick else LEARNING).items():
            console.print(f"learning in setting {name} ...", highlight=False)
            curves[name] = cases.learning(run, SETTINGS[name], seeds, steps, 1 if quick else 3)
        if plot is not None:
            training_plot.plot(report, curves, plot)
            console.print(f"wrote {plot}", highlight=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under 5 minutes")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3 and SBX")
    parser.add_argument(
        "--one-thread", action="store_true", help="only one seed, with one thread of XLA's"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw a picture there (PNG)")
    options = parser.parse_args(arguments)
    console = Console(width=160)
    with tempfile.TemporaryDirectory() as cache:
        prepare(cache, options.one_thread)
        report = Report(
            PACKAGES,
            "training",
            quick=options.quick,
            seeds="JAX's keys 0 and 1, split for several seeds; rivals' from 0 on",
            part=ONE_THREAD_PART if options.one_thread else None,
        )
        if options.one_thread:
            one_thread(report, options.quick, console)
        else:
            measure(report, options.quick, options.rivals, options.plot, console)
            claims(report)
    report.finish(options.json, console)


if __name__ == "__main__":
    main()
