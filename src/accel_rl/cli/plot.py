"""`accel-rl plot`: pictures of agents' and tabular runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, refuse_options

EXAMPLES = console.examples(
    "accel-rl plot runs/cartpole",
    "accel-rl plot runs/uniform runs/per runs/amper --out pictures --metric episode_return",
    "accel-rl plot runs/cartpole --per-seed --format pdf --title 'Four seeds'",
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
    per_seed: Annotated[
        bool, typer.Option("--per-seed", help="Of agents: a thin line for each seed, too.")
    ] = False,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of agents: title of the picture.")
    ] = None,
    file_format: Annotated[
        Literal["png", "pdf", "svg"], typer.Option("--format", help="Of the pictures.")
    ] = "png",
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Pixels an inch, of PNG.")] = 120,
    json: AsJson = False,
) -> None:
    """Draw learning curves of agents, or a table's curve, policy and modelled time, as pictures.

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
        refuse_options(
            "is of agents, this is a table",
            metric=metric,
            confidence=confidence,
            title=title,
            per_seed=per_seed or None,
        )
    if out is None and len(runs) > 1:
        raise typer.BadParameter(
            "must say where the picture of several runs goes", param_hint="--out"
        )
    directory = out or runs[0]
    from accel_rl.cli import drawing, pictures

    with console.bad_input(None if all(agents) else "RUN_DIR"):
        if all(agents):
            level = 0.95 if confidence is None else confidence
            figures = drawing.figures(
                runs, metric or "evaluation", level, per_seed=per_seed, title=title
            )
        else:
            figures = pictures.table_figures(runs[0])
    files = {
        (directory / name).with_suffix(f".{file_format}"): figure
        for name, figure in figures.items()
    }
    with console.bad_input("--out"):
        directory.mkdir(parents=True, exist_ok=True)
    with console.progress("drawing", len(figures)) as advance:
        for path, figure in files.items():
            pictures.save(figure, path, dpi)
            advance(1)
    if json:
        console.print_json({"files": [str(path) for path in files]})
    else:
        typer.echo("\n".join(map(str, files)))
