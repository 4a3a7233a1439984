"""How fast tabular training is: against C, against Gymnasium, and against the machine.

    python benchmarks/tabular.py [--quick] [--json PATH] [--plot PATH] [--plot-policy PATH]

Q-learning from random-policy experience of FrozenLake 4x4 and Taxi. All systems of a case learn
from the same rows, into tables of the same layout, with the same arithmetic; they are checked to
learn the same, and timed in interleaved rounds. Rates are per core-second, CPU time of all threads,
which other processes disturb less than wall time. Passes and collecting are held to one core, as
their rivals have one thread; what runs on several cores is given in wall time as well. Compiling
and arranging rows are not timed. `--plot` draws the roofline, `--plot-policy` the time from a log
to its final policy (see `tabular_policy.py`).
"""

import argparse
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import roofline
from common import PER_CORE, Report, System, interleave, one_core, warn
from rich.console import Console
from tabular_baselines import LANES, Baselines, baselines
from tabular_calls import calls
from tabular_owners import DPUS, JAX_OWNER, OWNER, owner_case, owner_passes
from tabular_policy import draw, policy_claims, time_to_policy
from tabular_systems import CPass, JaxPass, KernelPass, Log, Pass, Problem, check_agreement
from tabular_training import COLLECT, GYMNASIUM, collection, collection_case, training

from accel_rl import datasets, envs, native
from accel_rl.io.machine import core_count

ENVIRONMENTS = ("FrozenLake-v1", "Taxi-v4")
NUMERICS = ("fp32", "int32_scaled", "int32_pow2")
BLOCKS = (1, 128)
NUM_ROWS = 2**20
NUM_DPUS = 1024
REPLICAS = (64, 256, 512, 1024)
DRAWN_REPLICAS = 512  # in the roofline; the only number for Taxi
REPLICA_CHUNKS = (1, 16)
REPLICA_UPDATES = 2**24  # replicas times rows: the same work for every number of replicas
ALPHA = np.asarray([0.1], np.float32)
FLAT, REPLICATED = "accel_rl flat", "accel_rl replicas"
KERNEL, KERNEL_REPLICAS = "accel_rl cpu kernel", "accel_rl cpu kernel, replicas"
SEQUENTIAL, SIDE_BY_SIDE = "C sequential", f"C {LANES} lanes"
UNCONTRACTED = ", no FMA"  # of C that rounds every product, as the kernels do


def rival_of(numerics: str) -> str:
    """Return the name of sequential C that rounds as the kernels do."""
    return SEQUENTIAL + (UNCONTRACTED if numerics == "fp32" else "")


def chunk_case(environment: str, numerics: str, block: int) -> str:
    """Return the name in records of a pass over chunks."""
    return f"{environment}, {NUM_DPUS} DPUs, {numerics}, block {block}"


def replica_case(environment: str, replicas: int, chunks: int, block: int) -> str:
    """Return the name in records of many step sizes over the same rows."""
    return f"{environment}, {replicas} replicas, {chunks} chunks, fp32, block {block}"


def loops_for(directory: Path, problem: Problem) -> dict[str, Baselines]:
    """Return the C loops compiled for a problem, by suffix of their names; none without gcc."""
    program = problem.program
    name = program.rule.numerics.name
    build = functools.partial(baselines, directory, name, program.num_actions, program.target_block)
    loops = {"": build()}
    if name == "fp32":
        loops[UNCONTRACTED] = build(contracted=False)
    return {suffix: each for suffix, each in loops.items() if each is not None}


def compare(
    report: Report,
    case: str,
    problem: Problem,
    systems: dict[str, Pass],
    rounds: int,
    replicas: int = 1,
) -> None:
    """Check that the systems agree, time them, and record rates and ratios.

    Ratios are to sequential C, and of the native kernels to every system.
    """
    check_agreement(systems)
    work = problem.num_rows * replicas
    with one_core():
        timings = interleave({name: System(run, work) for name, run in systems.items()}, rounds)
    report.add_rates(case, timings)
    for name in systems:
        if name != SEQUENTIAL:
            report.add_ratio(case, name, SEQUENTIAL, timings)
        for kernel in systems.keys() & {KERNEL, KERNEL_REPLICAS} - {name}:
            if name != SEQUENTIAL:
                report.add_ratio(case, kernel, name, timings)


def chunk_passes(report: Report, log: Log, directory: Path, rounds: int) -> None:
    """One table for each of many chunks: the library's paths and the sequential C loop."""
    for numerics in NUMERICS:
        for block in BLOCKS:
            problem = Problem(log, NUM_ROWS, NUM_DPUS, numerics, block)
            loops = loops_for(directory, problem)
            systems: dict[str, Pass] = {FLAT: JaxPass(problem, "flat", ALPHA)}
            if native.why_absent() is None:
                systems[KERNEL] = KernelPass(problem, ALPHA)
            for suffix, each in loops.items():
                systems[SEQUENTIAL + suffix] = CPass(each, problem, "sequential", ALPHA)
            if loops:
                systems["C prefetching"] = CPass(loops[""], problem, "prefetching", ALPHA)
            if numerics == "fp32":
                for path in ("batched", "reference"):
                    systems[f"accel_rl {path}"] = JaxPass(problem, path, ALPHA)
            compare(report, chunk_case(log.environment, numerics, block), problem, systems, rounds)


def replica_passes(
    report: Report, log: Log, replicas: int, chunks: int, directory: Path, rounds: int
) -> None:
    """Many step sizes over the same rows: together in JAX, in turn and side by side in C."""
    alphas = np.linspace(0.05, 0.5, replicas, dtype=np.float32)
    for block in BLOCKS:
        problem = Problem(log, REPLICA_UPDATES // replicas, chunks, "fp32", block)
        loops = loops_for(directory, problem)
        systems: dict[str, Pass] = {REPLICATED: JaxPass(problem, "flat", alphas)}
        if native.why_absent() is None:
            systems[KERNEL_REPLICAS] = KernelPass(problem, alphas)
        if loops:
            systems[SEQUENTIAL] = CPass(loops[""], problem, "sequential", alphas)
        for suffix, each in loops.items():
            systems[SIDE_BY_SIDE + suffix] = CPass(each, problem, "lanes", alphas)
        case = replica_case(log.environment, replicas, chunks, block)
        compare(report, case, problem, systems, rounds, replicas)


def threads(report: Report, log: Log, directory: Path, rounds: int) -> None:
    """Threads on one log, with one table or one each, as SwiftRL's CPU versions are remembered."""
    problem = Problem(log, NUM_ROWS, 1, "fp32", 1)
    built = loops_for(directory, problem)
    if not built:
        return
    loops = built[""]
    count = core_count()
    rows = np.asarray(problem.words)[0]
    rates = problem.rates(ALPHA)
    alpha, gamma = float(rates.alpha[0]), float(rates.gamma)
    runs = {SEQUENTIAL: System(CPass(loops, problem, "sequential", ALPHA), NUM_ROWS)}
    for name, loop in (
        ("C threads, shared table", loops.shared_table),
        ("C threads, private tables", loops.private_tables),
    ):
        table = problem.tables(1)[0, 0]
        run = functools.partial(loop, rows, table, alpha, gamma, threads=count)
        runs[name] = System(run, NUM_ROWS)
    timings = interleave(runs, rounds)
    case = f"{log.environment}, one log, {count} threads, fp32, block 1"
    report.add_rates(case, timings, wall=True)
    for name in list(runs)[1:]:
        for metric in (PER_CORE, "updates per second"):
            report.add_ratio(case, name, SEQUENTIAL, timings, metric)


def claims(report: Report) -> None:
    """Return the targets of this benchmark."""
    for environment, bound in zip(ENVIRONMENTS, (0.40, 0.25), strict=True):
        for block in BLOCKS:
            text = f"cpu path, {environment}, fp32, block {block}: share of sequential C's rate"
            cases = [chunk_case(environment, "fp32", block)]
            report.claim(text, bound, cases, FLAT, SEQUENTIAL)
    for block in BLOCKS:
        cases = [
            replica_case(ENVIRONMENTS[0], replicas, chunks, block)
            for replicas in REPLICAS
            for chunks in REPLICA_CHUNKS
        ]
        text = f"replica path, {ENVIRONMENTS[0]}, fp32, block {block}: times sequential C's rate"
        report.claim(text, 4.0, cases, REPLICATED, SEQUENTIAL)
    kernel_claims(report)
    for environment in ENVIRONMENTS:
        text = f"collection, {environment}: times a Gymnasium loop's rate"
        metric = "transitions per core-second"
        report.claim(text, 100.0, [collection_case(environment)], COLLECT, GYMNASIUM, metric)
    policy_claims(report, ENVIRONMENTS)


def kernel_claims(report: Report) -> None:
    """Return the targets of the native kernels, by time against C with the same semantics."""
    for environment in ENVIRONMENTS:
        for num_dpus in DPUS:
            cases = [owner_case(environment, "fp32", num_dpus)]
            for bound, system in ((3.0, OWNER), (1.0, JAX_OWNER)):
                text = f"{system}, {environment}, fp32, {num_dpus} DPUs: times C's rate"
                report.claim(text, bound, cases, system, rival_of("fp32"))
        for numerics in NUMERICS:
            rival = rival_of(numerics)
            for block in BLOCKS:
                text = f"cpu kernel, {environment}, {numerics}, block {block}: share of C's rate"
                cases = [chunk_case(environment, numerics, block)]
                report.claim(text, 0.85, cases, KERNEL, rival)
        for block in BLOCKS:
            cases = [replica_case(environment, DRAWN_REPLICAS, 1, block)]
            text = f"cpu kernel, {environment}, {DRAWN_REPLICAS} replicas, block {block}: "
            rival = SIDE_BY_SIDE + UNCONTRACTED
            report.claim(text + "share of C lanes' rate", 0.6, cases, KERNEL_REPLICAS, rival)
            report.claim(text + "times JAX's rate", 2.0, cases, KERNEL_REPLICAS, REPLICATED)


def roofline_points() -> list[roofline.Point]:
    """Return the roofline of FP32, strictly sequential updates."""
    points = []
    for environment in ENVIRONMENTS:
        actions = envs.make_mdp(environment).num_actions
        case = chunk_case(environment, "fp32", 1)
        for system in (SEQUENTIAL, KERNEL, FLAT, "accel_rl batched"):
            points.append(roofline.Point(environment, actions, case, system))
        case = replica_case(environment, DRAWN_REPLICAS, 1, 1)
        for system in (SIDE_BY_SIDE, KERNEL_REPLICAS, REPLICATED):
            points.append(
                roofline.Point(environment, actions, case, system, replicas=DRAWN_REPLICAS)
            )
    return points


def measure(environment: str, report: Report, directory: Path, quick: bool) -> None:
    """All measurements of one environment."""
    rounds = 9 if quick else 25
    mdp = envs.make_mdp(environment)
    dataset = datasets.collect(mdp, "random", NUM_ROWS, environment=environment)
    log = Log(environment, mdp, dataset.transitions)
    chunk_passes(report, log, directory, rounds)
    if native.why_absent() is None:
        loops = functools.partial(loops_for, directory)
        owner_passes(report, log, NUM_ROWS, ALPHA, loops, rival_of, rounds)
    lake = environment == ENVIRONMENTS[0]
    for replicas in REPLICAS if lake else (DRAWN_REPLICAS,):
        for chunks in REPLICA_CHUNKS if lake else (1,):
            replica_passes(report, log, replicas, chunks, directory, rounds)
    threads(report, log, directory, rounds)
    loops = baselines(directory, "fp32", mdp.num_actions, 1)
    time_to_policy(report, log, loops, dataset, 3 if quick else 9)
    if lake and native.why_absent() is None:
        calls(report, log, rounds)
    collection(report, log, 5 if quick else 9)
    roofline.modelled(report, environment, mdp.num_actions, NUMERICS)
    for numerics in NUMERICS[:2] if quick else NUMERICS:
        training(report, log, numerics, passes=20 if quick else 100, rounds=5 if quick else 9)


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under 5 minutes")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the roofline there (PNG)")
    parser.add_argument(
        "--plot-policy", type=Path, metavar="PATH", help="draw times to the final policy there"
    )
    options = parser.parse_args(arguments)
    jax.config.update("jax_platforms", "cpu")
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", 2)
    console = Console() if sys.stdout.isatty() else Console(width=140)
    if shutil.which("gcc") is None:
        warn("gcc is not on PATH: no C baselines, and no claims against them")
    report = Report(
        ("accel-rl", "jax", "jaxlib", "numpy", "gymnasium"),
        "tabular",
        quick=options.quick,
        seeds="0 of logs, orders and NumPy's generators",
    )
    with tempfile.TemporaryDirectory() as name:
        for environment in ENVIRONMENTS:
            console.print(f"measuring {environment} ...", highlight=False)
            measure(environment, report, Path(name), options.quick)
        roofline.ceilings(report, Path(name), rounds=9)
    claims(report)
    report.finish(options.json, console)
    if options.plot is not None:
        roofline.plot(report, options.plot, roofline_points(), NUMERICS)
    if options.plot_policy is not None:
        draw(report, options.plot_policy, ENVIRONMENTS)


if __name__ == "__main__":
    main()
