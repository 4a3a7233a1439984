"""`accel-rl train ENV|DATASET.npz`: a tabular rule trained on a log, on emulated DPUs."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import (
    AsJson,
    BackendName,
    Merge,
    Numerics,
    OrderName,
    Overwrite,
    Rule,
    Seed,
    Transitions,
    make_mdp,
    names_file,
)

if TYPE_CHECKING:
    from accel_rl.datasets import TabularDataset
    from accel_rl.experiment.tabular_run import TabularSettings
    from accel_rl.types import MDP

_ALGORITHM, _SCHEDULE, _MODEL = "Algorithm", "DPUs and schedule", "Modelled time"  # help panels

_DPUS = 2000  # by default

EXAMPLES = (
    "accel-rl train FrozenLake-v1 --out runs/lake",
    "accel-rl train taxi.npz --rule sarsa_epsilon_greedy --numerics int32_scaled --order RAN",
    "accel-rl train taxi.npz --preset swiftrl --dpus 125 --out runs/swiftrl --json",
)


def train_log(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            metavar="ENV|DATASET.npz",
            help="An environment, of which --num transitions are collected with a random "
            "policy, or a file from collect or import.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The run's folder. Default: runs/, and what was asked.")
    ] = None,
    overwrite: Overwrite = False,
    rule: Annotated[
        Rule, typer.Option(rich_help_panel=_ALGORITHM, help="The update rule.")
    ] = "q_learning",
    numerics: Annotated[
        Numerics, typer.Option(rich_help_panel=_ALGORITHM, help="Arithmetic of the tables.")
    ] = "fp32",
    order: Annotated[
        OrderName, typer.Option(rich_help_panel=_ALGORITHM, help="Order of a chunk's rows.")
    ] = "SEQ",
    stride: Annotated[
        int, typer.Option(rich_help_panel=_ALGORITHM, min=1, help="Distance of rows in STR.")
    ] = 4,
    by: Annotated[
        Literal["time", "owner"],
        typer.Option(
            rich_help_panel=_SCHEDULE,
            help="Partition: the log as it is, or sorted by state and action.",
        ),
    ] = "time",
    dpus: Annotated[
        int, typer.Option(rich_help_panel=_SCHEDULE, min=1, help="DPUs that share the rows.")
    ] = _DPUS,
    passes: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_SCHEDULE, min=1, help="Passes over every chunk. Default: 100."
        ),
    ] = None,
    period: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_SCHEDULE, min=1, help="Passes between merges, tau. Default: 1."
        ),
    ] = None,
    merge: Annotated[
        Merge | None,
        typer.Option(rich_help_panel=_SCHEDULE, help="How tables become one. Default: visits."),
    ] = None,
    preset: Annotated[
        Literal["swiftrl"] | None,
        typer.Option(
            rich_help_panel=_SCHEDULE,
            help="swiftrl: 2,000 passes, period 50, merge mean, unless given.",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(rich_help_panel=_ALGORITHM, help="Step size, 0 to 1.")
    ] = 0.1,
    gamma: Annotated[
        float, typer.Option(rich_help_panel=_ALGORITHM, help="Discount factor, 0 to 1.")
    ] = 0.95,
    epsilon: Annotated[
        float,
        typer.Option(rich_help_panel=_ALGORITHM, help="Exploration of SARSA's targets, 0 to 1."),
    ] = 0.1,
    target_block: Annotated[
        int,
        typer.Option(
            rich_help_panel=_ALGORITHM,
            min=1,
            help="By time: rows whose targets read the same table.",
        ),
    ] = 128,
    tasklets: Annotated[
        int,
        typer.Option(
            rich_help_panel=_MODEL,
            min=1,
            help="Tasklets of a DPU. Learning does not depend on them.",
        ),
    ] = 16,
    machine: Annotated[
        str,
        typer.Option(
            rich_help_panel=_MODEL, help="Modelled machine: a name (see doctor), or a .toml file."
        ),
    ] = "upmem-2560",
    backend: Annotated[
        BackendName, typer.Option(rich_help_panel=_SCHEDULE, help="What runs the chunks.")
    ] = "auto",
    group_size: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_SCHEDULE,
            min=1,
            help="DPUs whose rows are in memory at once, for huge logs. Default: all.",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="Environment to score in, of those that envs lists. Default: the dataset's."
        ),
    ] = None,
    num: Transitions = 1_000_000,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Train a tabular rule on emulated DPUs, and write the run's folder.

    The return is exact: dynamic programming on the environment's tables, greedy policy. A log of
    your own (see import) has no environment to score in, and no return. Seconds by part are
    modelled for a UPMEM machine, not measured: by the cost model, or with --backend upmem from the
    cycles that the DPU programs counted.
    """
    runtime.prepare_jax()
    from accel_rl import pim
    from accel_rl.cli import clearing, table_folder, training_output
    from accel_rl.experiment import tabular_run
    from accel_rl.io import run_folder
    from accel_rl.pim import load_machine, modelled

    schedule = pim.SWIFTRL if preset == "swiftrl" else pim.MergeSchedule(passes=100)
    settings = tabular_run.TabularSettings(
        rule=rule,
        numerics=numerics,
        order=order,
        stride=stride,
        by=by,
        dpus=dpus,
        passes=passes or schedule.passes,
        period=period or schedule.period,
        merge=merge or schedule.merge,
        alpha=alpha,
        gamma=gamma,
        epsilon=epsilon,
        target_block=target_block,
        tasklets=tasklets,
        backend=backend,
        group_size=group_size,
        seed=seed,
    )
    with console.bad_input("--group-size"):
        tabular_run.check_groups(settings)
    with console.bad_input("--machine"):
        described = load_machine(machine)
    dataset, mdp, environment = _data(data, env, num, seed)
    missing = dataset.info.missing_next_action
    if rule == "sarsa" and missing:
        raise typer.BadParameter(
            f"sarsa takes next actions from the log, and {missing} rows of {data} have none",
            param_hint="--rule",
        )
    if dpus > len(dataset):
        raise typer.BadParameter(
            f"{dpus:,} DPUs{', the default,' * (dpus == _DPUS)} are more than the "
            f"{len(dataset):,} transitions of {data}; give --dpus from 1 to {len(dataset)}",
            param_hint="--dpus",
        )
    directory = out or _directory(dataset, settings)
    with console.bad_input("--out"):
        run_folder.check_free(directory, overwrite)
    with console.bad_input():
        # No name holds the load, which by owner has a sorted copy of the log.
        workload = modelled.workload(described, modelled.load_of(dataset), settings.kernel, dpus)
        chosen = pim.select_backend(backend, tasklets=tasklets, machine=described.name).name
        seconds = modelled.parts(described, workload)

    probe = None if mdp is None else tabular_run.return_probe(mdp, tabular_run.horizon_of(mdp))
    what = f"{rule} {numerics} {order} on {dpus:,} DPUs by {by}"
    on_dpus = backend == "upmem"
    with (
        console.progress(f"training {what}", settings.passes) as advance,
        console.bad_input(),
        pim.upmem.recording() as recorded,
    ):
        if group_size is not None:
            outcome = tabular_run.train_groups(dataset, settings, probe, advance, machine=described)
        else:
            chunks = tabular_run.chunks_of(dataset, dpus, by)
            # Backend upmem trains in one call: each would transfer the log to the DPUs again.
            outcome = tabular_run.train(
                chunks, settings, probe, advance, segmented=not on_dpus, machine=described
            )
    if on_dpus and recorded.report is not None:
        weighted = settings.merge != "mean"
        seconds = modelled.parts_of_run(described, recorded.report, weighted_merge=weighted)

    config = {
        "command": "train",
        "data": data,
        "preset": preset,
        "machine": machine,
        "settings": dataclasses.asdict(settings),
        "dataset": tabular_run.describe(dataset),
        **run_folder.made_with(),
    }
    results = table_folder.results_of(
        environment or dataset.info.environment, settings, outcome, seconds, mdp
    )
    results["trained_by"] = f"upmem, {pim.upmem.which_toolkit()}" if on_dpus else chosen
    results["modelled_from"] = "counters of the DPUs" if on_dpus else "cost model"
    with console.bad_input("--out"):
        clearing.clear(directory)  # not before: what fails or is interrupted leaves an older run
    table_folder.write(
        directory, console.command_line(context), config, outcome, environment, results
    )
    if json:
        console.print_json({"run": str(directory), **results})
    else:
        training_output.print_table_run(directory, results)


def _data(
    data: str, env: str | None, num: int, seed: int
) -> "tuple[TabularDataset, MDP | None, str | None]":
    """Return the dataset, and tables and name of the environment to score in, or None."""
    from accel_rl import datasets
    from accel_rl.envs.registry import has_tables

    if names_file(data):
        with console.bad_input("DATASET.npz"):
            dataset = datasets.load(data, mapped=True)
        name = env or dataset.info.environment
        if env is None and not has_tables(name):
            return dataset, None, None
        mdp = make_mdp(name, "--env")
        sizes = (dataset.info.num_states, dataset.info.num_actions)
        if sizes != (mdp.num_states, mdp.num_actions):
            raise typer.BadParameter(
                f"{data} has {sizes[0]} states and {sizes[1]} actions, {name} has "
                f"{mdp.num_states} and {mdp.num_actions}",
                param_hint="--env",
            )
        return dataset, mdp, name
    mdp = make_mdp(data, "ENV|DATASET.npz")
    with console.progress(f"collecting {num:,} transitions of {data}"):
        dataset = datasets.collect(mdp, "random", num, seed=seed, environment=data)
        dataset.episode.block_until_ready()
    return dataset, mdp, data


def _directory(dataset: "TabularDataset", settings: "TabularSettings") -> Path:
    from accel_rl.io import run_folder

    parts = (
        run_folder.part_of_a_path(dataset.info.environment),
        settings.rule,
        settings.numerics,
        settings.order,
        *(["owner"] if settings.by == "owner" else []),
        f"{settings.dpus}dpus",
        f"{settings.merge}{settings.period}",
        f"seed{settings.seed}",
    )
    return Path("runs") / "-".join(parts)
