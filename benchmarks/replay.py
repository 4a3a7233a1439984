"""How fast experience replay is: against flashbax, cpprb and torchrl, and against uniform replay.

    python benchmarks/replay.py [--quick] [--interface] [--rivals PYTHON] [--json PATH]
                                [--plot PATH]

A step adds 16 transitions of five fields, samples a batch, gathers it, and sets new priorities
that depend on it, in a compiled loop that returns the probabilities, which importance-sampling
weights need. All systems hold the same items with the same priorities and are checked to draw from
the same distribution. They run in interleaved rounds; claims compare least CPU times over
rounds; wall times, medians and quartiles are recorded, too.
`--plot` draws the steps.

flashbax runs twice: as documented, and with a line that keeps XLA from copying its tree. The same
calls run on `accel_rl.replay.flashbax`, prioritised and uniform, as cases of their own, which
`--interface` runs alone. torchrl runs in an environment of its own, where its calls are timed. All
of this is of a CPU: `accelerator.py` is for accelerators.

The process holds itself to one core: of two that others use as well, XLA waits for the busier. On
one, CPU time is wall time without the turns of other processes.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import replay_hardware
import replay_plot
from common import BenchmarkRecord, Claim, Report
from replay_calls import CPPRB, TORCHRL, rivals
from replay_cases import (
    CALLS,
    LEAST,
    Run,
    call_case,
    calls,
    interface_case,
    interface_steps,
    learner_case,
    learner_steps,
    sampling,
    sampling_case,
    seeds_case,
    seeds_steps,
    step_case,
    steps,
)
from replay_memories import (
    AMPER_FR,
    AMPER_K,
    AUTO,
    DOCUMENTED,
    FLASHBAX_UNIFORM,
    INTERFACE,
    INTERFACE_UNIFORM,
    REMEDY,
    TREE,
    Problem,
)
from rich.console import Console

CAPACITIES = (10_000, 100_000, 1_000_000)
BATCHES = (64, 256)
SEEDS = 16
LAWS = ("heavy", "even")  # of priorities
PACKAGES = ("jax", "jaxlib", "numpy", "flashbax", "cpprb")
INTERFACE_PART = "flashbax's interface"


def measure(run: Run, quick: bool) -> None:
    """All cases of a CPU."""
    for capacity in CAPACITIES:
        problem = Problem(capacity)
        batches = BATCHES[:1] if quick and capacity != CAPACITIES[1] else BATCHES
        for batch_size in batches:
            steps(run, problem, batch_size)
        interface_steps(run, problem, BATCHES[-1])
        if capacity > CAPACITIES[0]:
            learner_steps(run, problem, BATCHES[0])
        if capacity < CAPACITIES[-1]:
            seeds_steps(run, problem, BATCHES[0], SEEDS)
        sampling(run, problem, BATCHES[0])
        for batch_size in batches if not quick or len(batches) > 1 else ():
            calls(run, problem, batch_size)
    sampling(run, Problem(CAPACITIES[-1], LAWS[1]), BATCHES[0])


def claims(report: Report) -> None:
    """Return the targets of this benchmark."""
    small, middle, large = CAPACITIES
    batch_size = BATCHES[0]
    text = "PER step in a scan, capacity {:,}, batch {}: times as fast as {}"
    for capacity, bound in zip(CAPACITIES, (1.3, 4.0, 10.0), strict=True):
        case = step_case(capacity, batch_size)
        faster(report, text.format(capacity, batch_size, DOCUMENTED), bound, case, DOCUMENTED)
    for capacity in (middle, large):
        case = step_case(capacity, batch_size)
        faster(report, text.format(capacity, batch_size, REMEDY), 1.4, case, REMEDY)
        on_jax = f"on JAX alone, {text.format(capacity, batch_size, REMEDY)}"
        faster(report, on_jax, 1.2, case, REMEDY, TREE)
    interface_claims(report)
    for capacity in (small, middle):
        case = seeds_case(capacity, batch_size, SEEDS)
        claim = f"PER step of {SEEDS} vmapped seeds, capacity {capacity:,}: times as fast as "
        faster(report, claim + DOCUMENTED, 2.0, case, DOCUMENTED)
    for capacity, bound in ((middle, 3.0), (large, 10.0)):
        case = learner_case(capacity, batch_size)
        claim = f"PER step with a learner, capacity {capacity:,}: times as fast as "
        faster(report, claim + DOCUMENTED, bound, case, DOCUMENTED)
        faster(report, claim + REMEDY, 1.1, case, REMEDY)
    case = call_case("sample", middle, BATCHES[1])
    claim = f"sample call, capacity {middle:,}, batch {BATCHES[1]}: times as fast as cpprb"
    faster(report, claim, 1.8, case, CPPRB)
    for capacity in CAPACITIES:
        case = step_case(capacity, batch_size)
        rival = TORCHRL + CALLS
        faster(report, text.format(capacity, batch_size, rival), 5.0, case, rival)
    for system in (AMPER_FR, AMPER_K):
        for law in LAWS:
            claim = (
                f"{system}, sampling at {large:,}, {law} priorities: rate over the tree's, a third"
            )
            faster(report, claim, 1 / 3, sampling_case(large, batch_size, law), AUTO, system)


def interface_claims(report: Report) -> None:
    """Claim that flashbax's calls are faster here, at every capacity."""
    for capacity in CAPACITIES:
        case = interface_case(capacity, BATCHES[1])
        claim = f"{{}}, capacity {capacity:,}, batch {BATCHES[1]}: times as fast as {{}}"
        for system, rivals_of in (
            (INTERFACE, (DOCUMENTED, REMEDY)),
            (INTERFACE_UNIFORM, (FLASHBAX_UNIFORM,)),
        ):
            for rival in rivals_of:
                faster(report, claim.format(system, rival), 1.0, case, rival, system)


def faster(
    report: Report, claim: str, bound: float, case: str, rival: str, system: str = AUTO
) -> None:
    """Claim how many times as fast as the rival the system is, by least times of this report."""
    ours, theirs = (_least(report, case, name) for name in (system, rival))
    if ours is None or theirs is None:
        report.claims.append(Claim(claim, None, bound, None))
        return
    value = theirs.value / ours.value
    report.claims.append(
        Claim(claim, value, bound, value >= bound, ours=ours.place, rival=theirs.place)
    )


def _least(report: Report, case: str, system: str) -> BenchmarkRecord | None:
    found = [
        record
        for record in report.records
        if (record.case, record.system) == (case, system) and record.metric.startswith(LEAST)
    ]
    return found[0] if found else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under 5 minutes")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has torchrl")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the steps there (PNG)")
    parser.add_argument(
        "--interface", action="store_true", help="only a step by flashbax's interface, on a CPU"
    )
    options = parser.parse_args(arguments)
    seeds = "fixed, of JAX's keys and NumPy's generators"
    part = INTERFACE_PART if options.interface else None
    report = Report(PACKAGES, "replay", quick=options.quick, seeds=seeds, part=part)
    rounds, count = (9, 1000) if options.quick else (25, 2000)
    if options.interface:
        for capacity in CAPACITIES:
            interface_steps(Run(report, rounds, count), Problem(capacity), BATCHES[-1])
        interface_claims(report)
        report.finish(options.json, Console(width=160))
        return
    with rivals(options.rivals) as (makers, versions):
        report.versions.update(versions)
        measure(Run(report, rounds, count, makers), options.quick)
        replay_hardware.beside(report, "this CPU, one core", CAPACITIES, BATCHES[0])
    claims(report)
    report.finish(options.json, Console(width=160))
    if options.plot is not None:
        replay_plot.plot(report, options.plot, CAPACITIES, BATCHES[0])


def hold_to_one_core() -> None:
    """Keep this process, before JAX starts its threads, on the first of its cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


if __name__ == "__main__":
    hold_to_one_core()
    main()
