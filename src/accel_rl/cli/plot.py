"""`accel-rl plot`: pictures of agents' and tabular runs."""

from pathlib import Path
from typing import Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, refuse_options

EXAMPLES = console.examples(
    "accel-rl plot runs/cartpole",
    "accel-rl plot runs/uniform runs/per runs/amper --out pictures --metric episode_return",
    "accel-rl plot runs/taxi --out pictures --json",
)


def plot(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_DIR...", help="Folders of runs; of agents, several at once."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the pictures; default: the run's, if there is one run."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of agents: which entry of metrics.jsonl. Default: evaluation, greedy episodes.",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Of agents: of the intervals over seeds. Default: 0.95"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Draw learning curves of agents, or a table's curve, policy and modelled time, as PNG files.

    Curves are inter-quartile means over seeds, with bootstrap intervals.
    """
    runtime.prepare_jax()
    from accel_rl.io.run_folder import kind_of

    with console.bad_input("RUN_DIR"):
        agents = [kind_of(run) in ("training", "sweep") for run in runs]
    if not all(agents):
        if len(runs) > 1:
            other = runs[agents.index(False)]
            raise typer.BadParameter(f"{other} is no agent's run: draw it alone")
        refuse_options("is of agents, this is a table", metric=metric, confidence=confidence)
    if out is None and len(runs) > 1:
        raise typer.BadParameter(
            "must say where the picture of several runs goes", param_hint="--out"
        )
    directory = out or runs[0]
    from accel_rl.cli import drawing, pictures

    with console.bad_input(None if all(agents) else "RUN_DIR"):
        if all(agents):
            level = 0.95 if confidence is None else confidence
            figures = drawing.figures(runs, metric or "evaluation", level)
        else:
            figures = pictures.table_figures(runs[0])
    with console.bad_input("--out"):
        directory.mkdir(parents=True, exist_ok=True)
    with console.progress("drawing", len(figures)) as advance:
        for name, figure in figures.items():
            pictures.save(figure, directory / name)
            advance(1)
    files = [str(directory / name) for name in figures]
    if json:
        console.print_json({"files": files})
    else:
        console.print_line("\n".join(files))
