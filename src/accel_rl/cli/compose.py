"""`accel-rl compose`: plans of trainings over devices, their runs and reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson

app = typer.Typer(
    help="Decide which device takes which part of a training, and run it.",
    epilog=console.examples(
        "accel-rl compose plan config.toml --out runs/composed",
        "accel-rl compose plan config.toml compose.objective=efficiency --out runs/other",
        "accel-rl compose run runs/composed --steps 20000",
        "accel-rl compose report runs/composed",
    ),
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A plan's folder.")]


@app.command()
def plan(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG.toml", help="See docs/configuration.md."),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[section.name=value]...", help="Settings over those of the file."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the plan.")] = Path(
        "runs/composed"
    ),
    overwrite: Annotated[bool, typer.Option(help="Replace a plan that is there.")] = False,
    cache: Annotated[
        bool, typer.Option(help="Use what was measured before for this training and machine.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Profile the devices, predict every mapping and choose one.

    Writes `config.json`, `mapping.toml` (which may be edited), `plan.json` and pictures.
    """
    runtime.prepare_jax()
    from accel_rl.cli.composing import folder, planning
    from accel_rl.io import run_folder

    with console.bad_input():
        wanted = folder.load(config, settings or [])
        run_folder.check_free(out, overwrite)
        with _told("profiling") as progress:
            found = planning.plan(wanted, cache=cache, progress=progress)
        planning.write_plan(out, found, console.command_line(context))
    planning.draw(out, found)
    _show(out, json)


@app.command()
def run(
    directory: Folder,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Environment steps; else those of config.json.")
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            help="Let the host stand in for devices that cannot run; times are not theirs."
        ),
    ] = False,
    restarts: Annotated[
        int, typer.Option(min=0, help="Of actors that fail, in the asynchronous executor.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Train as the folder's `mapping.toml` says, and measure it.

    Writes `measured.json`, `metrics.jsonl` and a picture of measured and predicted timelines.
    """
    runtime.prepare_jax()
    from accel_rl.cli.composing import folder, running

    with console.bad_input():
        planned, mapping = folder.read_mapping(directory)
        training = planned.configuration.training
        with _told("training") as progress:
            ran = running.run(
                directory,
                planned,
                mapping,
                steps=steps or training.steps,
                seed=training.seed,
                simulate=simulate,
                restarts=restarts,
                progress=progress,
            )
    _show(directory, json)
    if ran.ended != "done":
        console.note(f"accel-rl: {ran.ended}")
        raise typer.Exit(130 if ran.ended == "interrupted" else 1)


@app.command()
def report(directory: Folder, json: AsJson = False) -> None:
    """Show a plan's table, and what a run of it measured."""
    _show(directory, json)


def _show(directory: Path, as_json: bool) -> None:
    from accel_rl.cli.composing import reporting

    with console.bad_input():
        found = reporting.read(directory)
    if as_json:
        console.print_json(found)
    else:
        reporting.show(found)


@contextmanager
def _told(what: str) -> Iterator[Any]:
    """Show a progress bar; yield progress(description, done, total), which updates it."""
    with console.progress(what, 1.0) as advance:
        before = 0.0

        def progress(description: str, done: int, total: int) -> None:
            nonlocal before
            share = done / max(1, total)
            advance(share - before, f"{what}: {description}")
            before = share

        yield progress
