"""`accel-rl demo`: SwiftRL's experiment, from data collection to tables and pictures."""

import dataclasses
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Seed
from accel_rl.io.machine import core_count
from accel_rl.io.values import Json

if TYPE_CHECKING:
    from accel_rl.experiment.swiftrl import Findings

_SILENCE = 3.0  # least seconds between lines of progress where stderr is not a terminal
DETAILS = "details.json"

EXAMPLES = console.examples("accel-rl demo", "accel-rl demo --quick --out runs/quick --json")


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for results and pictures.")] = Path("runs/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows, DPUs and passes: a check, not a result.")
    ] = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Run SwiftRL's experiment: Q-learning and SARSA on FrozenLake and Taxi, 2,000 emulated DPUs.

    Writes results.json (the runs of the table), details.json (the figures behind the pictures),
    config.json and PNG pictures, in place of an earlier demo's. Returns are exact; times by part
    are modelled.
    """
    from accel_rl.io import run_folder

    started = time.perf_counter()
    with console.bad_input("--out"):
        out.mkdir(parents=True, exist_ok=True)
        if run_folder.kind_of(out) is not None:
            run_folder.require_kind(out, "demo")
        elif any(out.glob("*.json")):
            raise ValueError(f"{out} holds JSON files that are not of a demo")
    console.note("SwiftRL's experiment: Q-learning and SARSA, FrozenLake and Taxi, emulated DPUs")
    runtime.prepare_jax()
    from accel_rl.cli import demo_pictures, pictures
    from accel_rl.experiment import swiftrl
    from accel_rl.experiment.tabular_run import TabularSettings

    scale = swiftrl.QUICK if quick else swiftrl.FULL
    tasklets = TabularSettings().tasklets
    total = swiftrl.steps(scale) + 1
    with (
        console.progress("collecting", total) as advance,
        ThreadPoolExecutor(core_count()) as pool,
    ):
        told = time.perf_counter()

        def step(done: str) -> None:
            nonlocal told
            advance(1, done)
            if not sys.stderr.isatty() and time.perf_counter() - told > _SILENCE:
                told = time.perf_counter()
                console.note(f"  {told - started:3.0f} s  {done}")

        findings = [
            swiftrl.explore(environment, scale, seed, pool, step)
            for environment in swiftrl.ENVIRONMENTS
        ]
        # Written last: its presence shows that all files belong to one run.
        (out / run_folder.RESULTS).unlink(missing_ok=True)
        run_folder.begin_run(out, "demo", console.command_line(context), [seed], _files())
        figures = demo_pictures.draw(findings, scale, tasklets)
        for name, figure in figures.items():
            pictures.save(figure, out / name)
        step("pictures")
    seconds = round(time.perf_counter() - started, 1)

    records = [run.record for found in findings for run in (*found.trained, found.mean)]
    details = {
        "scaling_dpus": swiftrl.SCALING_DPUS,
        "environments": [_details(found) for found in findings],
    }
    config = {
        "command": "demo",
        "quick": quick,
        "seed": seed,
        "scale": dataclasses.asdict(scale),
        "settings": dataclasses.asdict(
            TabularSettings(dpus=scale.dpus, passes=scale.passes, seed=seed)
        ),
        "datasets": [found.dataset for found in findings],
        **run_folder.made_with(),
        "measured_seconds": seconds,
    }
    run_folder.write_json(out / DETAILS, details)
    run_folder.write_json(out / run_folder.CONFIG, config)
    run_folder.write_json(out / run_folder.RESULTS, records)
    written = (run_folder.RESULTS, DETAILS, run_folder.CONFIG, *figures)
    files = [str(out / name) for name in written]
    if json:
        console.print_json(
            {"results": records, **details, "measured_seconds": seconds, "files": files}
        )
        return
    _report(findings, scale.dpus, scale.passes, tasklets)
    typer.echo(
        f"{len(records)} runs in {seconds:.0f} s; written: {', '.join(files)}\n"
        f"All on one page: accel-rl report {out}"
    )


def _files() -> dict[str, str]:
    from accel_rl.io.run_folder import CONFIG, RESULTS

    return {
        CONFIG: "every argument, and the datasets with their checksums",
        DETAILS: "figures behind the pictures",
        RESULTS: "runs of the table; written last",
    }


def _details(found: "Findings") -> dict[str, Json]:
    return {
        "environment": found.environment,
        "optimal_return": found.optimal,
        "fitted_mdp": found.fitted,
        "curves": [
            {
                "rule": run.settings.rule,
                "order": run.settings.order,
                "numerics": run.settings.numerics,
                "merge": run.settings.merge,
                "by": run.settings.by,
                "passes": run.outcome.passes.tolist(),
                "episode_return": run.returns.tolist(),
            }
            for run in (*found.trained, found.mean)
        ],
        "sarsa": found.sarsa,
        "merge_period": found.sweep,
        "modelled_scaling_seconds": found.scaling,
    }


def _report(findings: "list[Findings]", dpus: int, passes: int, tasklets: int) -> None:
    from accel_rl.plot.style import PART_LABELS

    for found in findings:
        rows = []
        for run in found.trained:
            settings, times = run.settings, run.record["modelled_seconds"]
            rows.append(
                (
                    settings.rule,
                    settings.by,
                    settings.order,
                    settings.numerics,
                    f"{run.record['episode_return']:.3f}",
                    *(f"{1e3 * times[part]:.2f}" for part in PART_LABELS),
                )
            )
        console.print_table(
            f"{found.environment}: {found.dataset['rows']:,} transitions of a random policy, "
            f"{dpus:,} DPUs, {tasklets} tasklets, {passes} passes, merged by visits after each\n"
            f"best possible return {found.optimal:.3f}, by a policy that may go by the steps left; "
            "times are modelled, in ms",
            (
                "rule",
                "by",
                "order",
                "numerics",
                "return",
                *(f"modelled\n{part}" for part in PART_LABELS.values()),
            ),
            rows,
            numbers_from=4,
        )
        typer.echo(
            f"q_learning, SEQ, fp32 with the plain mean of the tables instead: "
            f"{found.mean.record['episode_return']:.3f}\n"
            "value iteration on the MDP that the same log's counts estimate: "
            f"{found.fitted['episode_return']:.3f}, in {found.fitted['measured_seconds']:.2f} s "
            "on this machine (measured)\n"
        )
    console.print_table(
        "SARSA's values against the exact values of the policy that it estimates",
        ("environment", "policy", "DPUs", "max error", "mean error", "max |value|"),
        (
            (
                error["environment"],
                error["policy"],
                f"{error['dpus']:,}",
                f"{error['max_abs_error']:.3f}",
                f"{error['mean_abs_error']:.4f}",
                f"{error['largest_abs_value']:.3f}",
            )
            for found in findings
            for error in found.sarsa
        ),
        numbers_from=2,
    )
    typer.echo(
        "Rows are taken in order (SEQ), with a stride (STR) or shuffled (RAN). A DPU with more "
        "rows sees each pair more often in a pass: few DPUs come closer in as many passes.\n"
        "By time a DPU has rows of a span of time and a table of its own; by owner it has the rows "
        "of few pairs (state, action), and only these entries are exchanged.\n"
    )
