"""`accel-rl play`: one episode of a trained agent, as text, GIF or MP4."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Seed, check_file

EXAMPLES = console.examples(
    "accel-rl play runs/cartpole",
    "accel-rl play runs/cartpole --out cartpole.gif --checkpoint best",
    "accel-rl play runs/cartpole --training 1 --seed 3",
)

Run = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The folder of an agent's training.")]
Training = Annotated[
    int,
    typer.Option(
        "--training",
        metavar="N",
        min=0,
        help="Which of the run's trainings: its combination times seeds, plus its seed's number.",
    ),
]
Checkpoint = Annotated[
    Literal["last", "best"], typer.Option(help="last, or the one that was evaluated best.")
]


def play(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .gif, or .mp4 by ffmpeg; default: text on stdout."),
    ] = None,
    training: Training = 0,
    checkpoint: Checkpoint = "last",
    max_steps: Annotated[
        int, typer.Option(min=1, max=100_000, help="Steps that cut the episode.")
    ] = 1_000,
    fps: Annotated[int, typer.Option(min=1, max=100, help="Steps shown in a second.")] = 30,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Play one greedy episode of what was learned, and show it."""
    runtime.prepare_jax()
    from accel_rl.cli import episode_output as output

    if out is not None:
        with console.bad_input("--out"):
            check_file(out)
            output.check_format(out)
    runtime.import_gymnax()
    import jax
    import numpy as np

    from accel_rl import experiment

    with console.bad_input("RUN_DIR"):
        trained = experiment.load_run(run, checkpoint)
    with console.bad_input("--training"):
        trained.policy(training)
    with console.progress(f"playing {run}"):
        episode = trained.record(jax.random.key(np.uint32(seed)), training, max_steps)
    environment = trained.experiment.configuration.environment
    if out is not None:
        with console.progress("drawing"), console.bad_input("--out"):
            output.save(out, environment, episode, fps)
    figures = {
        "run": str(run),
        "environment": environment.name,
        "checkpoint": str(trained.checkpoint),
        "steps": len(episode.rewards),
        "episode_return": float(episode.rewards.sum(dtype=np.float64)),
        "terminated": episode.terminated,
        "file": None if out is None else str(out),
    }
    if json:
        console.print_json(figures)
        return
    if out is None:
        for line in output.text(environment, episode):
            typer.echo(line)
    ended = "terminated" if episode.terminated else "truncated or cut"
    typer.echo(
        f"{environment.name}: return {figures['episode_return']:g} in {figures['steps']} steps, "
        f"{ended}" + ("" if out is None else f"; {out}")
    )
