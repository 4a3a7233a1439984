"""`accel-rl plot`: pictures of a run."""

from pathlib import Path
from typing import Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import Json

EXAMPLES = console.examples(
    "accel-rl plot runs/lake", "accel-rl plot runs/taxi --out pictures --json"
)


def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run's folder, from train.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the pictures; default: the run's.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw a run's learning curve, policy and modelled time parts as PNG files."""
    runtime.prepare_jax()
    from accel_rl import envs
    from accel_rl.cli import folders, pictures

    with console.bad_input("RUN_DIR"):
        results = folders.read_json(run, folders.RESULTS)
        history = folders.read_json(run, folders.HISTORY)
        table = folders.load_table(run)
    directory = out or run
    with console.bad_input("--out"):
        directory.mkdir(parents=True, exist_ok=True)
    environment = results["environment"]
    label = f"{results['rule']}, {results['numerics']}, {results['order']}"
    where = f"{environment}, {results['dpus']:,} DPUs, {results['tasklets']} tasklets"
    figures = {
        "time.png": pictures.parts_figure(
            f"Modelled time: {where}", {label: results["modelled_seconds"]}
        )
    }
    if history["episode_return"] is not None:
        figures["curve.png"] = pictures.curve_figure(
            environment,
            history["passes"],
            history["episode_return"],
            label,
            results["optimal_return"],
        )
    if table.environment in envs.list_environments():
        figures["policy.png"] = pictures.policy_figure(
            table.environment, table.values, f"{label}, {results['dpus']:,} DPUs"
        )
    with console.progress("drawing", len(figures)) as advance:
        for name, figure in figures.items():
            pictures.save(figure, directory / name)
            advance(1)
    files = [str(directory / name) for name in figures]
    if json:
        console.print_json({"files": files})
    else:
        typer.echo("\n".join(files))
