"""`accel-rl export`: the greedy policy of a training as a program of its own."""

from pathlib import Path
from typing import Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Replace, check_file
from accel_rl.cli.play import Checkpoint, Run, Training

EXAMPLES = console.examples(
    "accel-rl export runs/cartpole --out cartpole.stablehlo",
    "accel-rl export runs/cartpole --out cartpole.stablehlo --checkpoint best --overwrite",
)


def export(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")],
    training: Training = 0,
    checkpoint: Checkpoint = "last",
    overwrite: Replace = False,
    json: AsJson = False,
) -> None:
    """Write greedy actions as serialised StableHLO, for CPUs, GPUs and TPUs.

    Python with JAX runs it without this library:
    jax.export.deserialize(open(FILE, "rb").read()).call(observations).
    """
    with console.bad_input("--out"):
        check_file(out)
        if out.exists() and not overwrite:
            raise ValueError(f"{out} exists; --overwrite replaces it")
    runtime.prepare_jax()
    runtime.import_gymnax()
    from accel_rl import experiment
    from accel_rl.io import atomic_write

    with console.bad_input("RUN_DIR"):
        trained = experiment.load_run(run, checkpoint)
    with console.bad_input("--training"), console.progress("exporting"):
        exported = trained.export_policy(training)
    data = exported.serialize()
    with atomic_write(out) as file:
        file.write(data)
    (takes,), (gives,) = exported.in_avals, exported.out_avals
    if json:
        console.print_json(
            {
                "file": str(out),
                "bytes": len(data),
                "observations": str(takes),
                "actions": str(gives),
                "platforms": list(exported.platforms),
            }
        )
    else:
        typer.echo(f"{out}: {takes.str_short()} to {gives.str_short()}, {len(data):,} B")
