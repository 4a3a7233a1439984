"""The DPU programs: instructions and cycles of an update, and how fast the emulator runs them.

Instructions and cycles are those that the programs count on the emulated DPU: modelled, not
measured on hardware. The golden counts beside them were counted in code of the vendor's compiler
(`calibration.toml` of `accel_rl.pim.cost`). Speed is that of backend "upmem" over "cpu", which
does the same updates in native code.
"""

import argparse
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path

import jax
from common import Claim, Report, System, interleave, warn
from rich.console import Console

from accel_rl import datasets, envs, pim, tabular
from accel_rl.pim import cost

ENVIRONMENTS = ("FrozenLake-v1", "Taxi-v3")
NUMERICS = ("fp32", "int32_scaled", "int32_pow2")
SHAPES = ((1, 1), (128, 11), (128, 16), (1024, 16))  # target block, tasklets
LANES, ROWS_OF_A_DPU = 16, (500, 2_500)  # by owner
LATE = 19  # passes before the one that is counted: early ones are cheaper, entries being zero
INSTRUCTIONS, CYCLES = "modelled instructions of an update", "modelled cycles of an update"
GOLDEN = "counted in code of the vendor's compiler"
ALONE = "one tasklet, target block 1"


def chunks_of(name: str, rows: int, dpus: int, by: str = "time") -> pim.Chunks:
    """Return a random policy's log, cut for the DPUs."""
    mdp = envs.make_mdp(name)
    log = datasets.collect(mdp, "random", rows, seed=0, environment=name).transitions
    return pim.partition(log, dpus, mdp.num_states, mdp.num_actions, by)


def count(
    chunks: pim.Chunks, rule: str, numerics: str, shape: tuple[int, int], order: str = "SEQ"
) -> dict[str, float]:
    """Instructions and cycles of an update in a late pass, by metric; `shape`: unless by owner."""
    block, tasklets = shape
    found = {}
    for metric in (INSTRUCTIONS, CYCLES):
        backend = pim.upmem_backend(tasklets, count_instructions=metric == INSTRUCTIONS)
        run = functools.partial(
            pim.train,
            chunks,
            rule=tabular.make_rule(rule, tabular.make_numerics(numerics)),
            order=order,
            target_block=block,
            backend=backend,
        )
        # By owner targets are those of the last merge.
        before = run(schedule=pim.MergeSchedule(LATE, 1 if chunks.lanes else LATE))
        with pim.upmem.recording() as recorded:
            run(schedule=pim.MergeSchedule(1), initial=before.tables)
        assert recorded.report is not None
        found[metric] = recorded.report.counted / int(chunks.lengths.sum())
    return found


def name_of(numerics: str, shape: tuple[int, int]) -> str:
    """Return a system's name in the report."""
    where = ALONE if shape == (1, 1) else f"{shape[1]} tasklets, target block {shape[0]}"
    return f"{numerics}, {where}"


def updates(report: Report, rows: int) -> None:
    """Record what an update of Q-learning costs in each numerics, beside the golden counts."""
    calibration = cost.load_calibration()
    for name in ENVIRONMENTS:
        chunks = chunks_of(name, rows, 1)
        case = f"Q-learning, {name}, one DPU"
        for numerics in NUMERICS:
            golden = calibration[f"{numerics}_update_{chunks.num_actions}_actions"]
            report.add(case, f"{numerics}, {GOLDEN}", INSTRUCTIONS, "", [golden])
            for shape in SHAPES:
                for metric, value in count(chunks, "q_learning", numerics, shape).items():
                    report.add(case, name_of(numerics, shape), metric, "", [value])
        claim(report, case, "fp32", "int32_scaled", 5)
        claim(report, case, "int32_scaled", "int32_pow2", 1 / 0.55)
    chunks = chunks_of(ENVIRONMENTS[0], rows, 1)
    for rule in tabular.RULES:
        for numerics in NUMERICS:
            counted = count(chunks, rule, numerics, (1, 1))
            case = f"{rule}, {ENVIRONMENTS[0]}, one DPU"
            if rule != "q_learning":
                report.add(
                    case, name_of(numerics, (1, 1)), INSTRUCTIONS, "", [counted[INSTRUCTIONS]]
                )


def updates_by_owner(report: Report, rows: int) -> None:
    """Record what an update of Q-learning costs by owner."""
    for name, each in itertools.product(ENVIRONMENTS, ROWS_OF_A_DPU):
        chunks = chunks_of(name, rows, rows // each, "owner")
        case = f"Q-learning by owner, {name}, {rows // each} DPUs, {each} rows each"
        for numerics, order in itertools.product(NUMERICS, ("SEQ", "RAN")):
            system = f"{numerics}, {LANES} tasklets" + ("" if order == "SEQ" else f", {order}")
            counted = count(chunks, "q_learning", numerics, (1, LANES), order)
            for metric, value in counted.items():
                report.add(case, system, metric, "", [value])


def claim(report: Report, case: str, dear: str, cheap: str, bound: float) -> None:
    """Claim that one numerics takes `bound` times the instructions of another."""
    found = [report.find(case, name_of(x, (1, 1)), INSTRUCTIONS) for x in (dear, cheap)]
    values = [record.value for record in found if record is not None]
    ratio = values[0] / values[1] if len(values) == 2 else None
    text = f"{case}: instructions of {dear} / {cheap}"
    theirs, ours = (report.place(case, name_of(x, (1, 1)), INSTRUCTIONS) for x in (dear, cheap))
    holds = None if ratio is None else ratio >= bound
    report.claims.append(Claim(text, ratio, bound, holds, ours=ours, rival=theirs))


def speed(report: Report, rows: int, dpus: int, passes: int, rounds: int) -> None:
    """Record how fast the emulated DPUs train, against the native kernels."""
    for name in ENVIRONMENTS:
        chunks = chunks_of(name, rows, dpus)
        case = f"{name}, {dpus} DPUs, {rows} rows, INT32 power of two, training of {passes} passes"

        def train(backend: str, chunks: pim.Chunks = chunks) -> None:
            rule = tabular.q_learning(tabular.int32_pow2())
            schedule = pim.MergeSchedule(passes=passes)
            result = pim.train(chunks, rule=rule, schedule=schedule, backend=backend)
            jax.block_until_ready(result)

        systems = {
            backend: System(functools.partial(train, backend), rows * passes)
            for backend in ("upmem", "cpu")
        }
        timings = interleave(systems, rounds)
        report.add_rates(case, timings, wall=True)
        report.add_ratio(case, "upmem", "cpu", timings)


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and rows")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    rounds, passes = (3, 5) if options.quick else (9, 20)
    report = Report(["jax", "numpy"], "dpu_kernels", quick=options.quick, seeds="0 of logs")
    absent = pim.upmem.why_absent()
    if absent:
        warn(f"there is no backend upmem, so nothing is counted: {absent}")
    else:
        updates(report, 4_096)
        updates_by_owner(report, 100_000)
        speed(report, 200_000 if options.quick else 1_000_000, 2_000, passes, rounds)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
