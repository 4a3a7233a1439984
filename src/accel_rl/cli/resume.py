"""`accel-rl resume`: bit-identical continuation of a stopped training or sweep."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson

if TYPE_CHECKING:
    from accel_rl.experiment.assembly import Experiment
    from accel_rl.experiment.configuration import Configuration

EXAMPLES = console.examples(
    "accel-rl resume runs/cartpole", "accel-rl resume runs/cartpole --steps 1_000_000 --json"
)


def resume(
    context: typer.Context,
    run: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="The folder of an agent's training or sweep.")
    ],
    steps: Annotated[
        str | None,
        typer.Option(metavar="N", help="Environment steps in all; default: as configured."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Go on with a training from its newest whole checkpoint, to the configured number of steps.

    It ends with the same bits as one that was never stopped, on the same versions and devices; one
    of `accel-rl apex` does not, as its actors begin new episodes, and its own server is empty
    without `--durability log`.
    """
    runtime.prepare_jax()
    from accel_rl.cli import training_output
    from accel_rl.experiment import folder, sweep, training
    from accel_rl.io.run_folder import require_kind

    command, shown = console.command_line(context), sys.stderr.isatty()
    with console.bad_input("RUN_DIR"):
        kind = require_kind(run, "training", "sweep", "apex")
    if kind == "apex":
        _resume_apex(run, steps, command, json)
        return
    if kind == "training":
        with console.bad_input("RUN_DIR"):
            experiment = _longer(run, folder.read(run), steps)
            _say_if_done([(run, experiment)])
        with console.bad_input("RUN_DIR", (training.FolderError,)):
            _, results = training.run(run, experiment, command, resume=True, bar=shown)
        training_output.finish_training(run, results, json)
        return
    groups = []
    with console.bad_input("RUN_DIR"):
        for group in sweep.read(run):
            made = _longer(run / group.name, group.configuration, steps)
            groups.append((dataclasses.replace(group, configuration=made.configuration), made))
        _say_if_done([(run / group.name, made) for group, made in groups])
    with console.bad_input("RUN_DIR", (training.FolderError,)):
        results = sweep.run(run, groups, command, bar=shown, on_group=console.note)
    training_output.finish_sweep(run, results, json)


def _resume_apex(run: Path, steps: str | None, command: str, json: bool) -> None:
    """Go on with a run of `accel-rl apex`."""
    from accel_rl.cli import apex, apex_run
    from accel_rl.experiment import folder
    from accel_rl.remote.apex import ApexTraining

    with console.bad_input("RUN_DIR"):
        training, launch = apex_run.read(run)
        if steps is not None:
            complete = _with_steps(run, training.experiment.configuration, steps)
            changed = {**training.tables["training"], "steps": complete.training.steps}
            training = ApexTraining.from_tables({**training.tables, "training": changed})
        _say_if_done([(run, training.experiment)])
        with folder.writing(run):  # no other process may train there
            pass
    apex.train(run, training, launch, command, resume=True, json=json)


def _say_if_done(trainings: "Sequence[tuple[Path, Experiment]]") -> None:
    """Note if no training has a step left."""
    from accel_rl import io
    from accel_rl.experiment import folder

    for directory, experiment in trainings:
        checkpoints = folder.checkpoints(directory, experiment.configuration)
        done = max(checkpoints.steps(), default=0)
        if done < experiment.configuration.training.steps:
            return
        try:
            checkpoints.open(done)
        except io.DamagedError:  # the training continues from an earlier checkpoint
            return
    console.note(
        f"accel-rl: nothing is left to do, {done:,} steps are done; --steps N trains longer"
    )


def _longer(directory: Path, complete: "Configuration", steps: str | None) -> "Experiment":
    """Assemble the folder's configuration, with another number of steps if given."""
    from accel_rl.experiment import assembly, training

    if steps is not None:
        complete = _with_steps(directory, complete, steps)
    runtime.import_gymnax()
    made = assembly.assemble(complete)
    training.check(made)
    return made


def _with_steps(directory: Path, complete: "Configuration", steps: str) -> "Configuration":
    """Return the folder's configuration with another number of steps, which must not be fewer."""
    from accel_rl.experiment import folder, words
    from accel_rl.io import validation

    done = max(folder.checkpoints(directory, complete).steps(), default=0)
    with console.bad_input():  # blames --steps, not RUN_DIR
        number = validation.integer(words.parse(steps), "--steps")
        if number < done:
            raise ValueError(f"--steps must be at least {done}, which are done, got {number}")
    return dataclasses.replace(
        complete, training=dataclasses.replace(complete.training, steps=number)
    )
