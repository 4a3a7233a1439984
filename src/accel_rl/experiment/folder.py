"""Folder of a training: configuration, metrics, checkpoints and results."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from accel_rl import __version__, io
from accel_rl.experiment import configuration, layers
from accel_rl.experiment.configuration import Configuration
from accel_rl.io.loggers import Row
from accel_rl.io.run_folder import (
    CONFIG,
    METRICS,
    RESULTS,
    Kind,
    begin_run,
    continue_run,
    require_kind,
    write_json,
)
from accel_rl.io.values import Json

README, TABLE, EVENTS, CHECKPOINTS = "README.txt", "metrics.csv", "tensorboard", "checkpoints"
WANDB = "wandb"
FILES = {
    README: "commands to continue with",
    CONFIG: "every setting; --config reads it to repeat the training",
    METRICS: "a row for each training.period steps: means over seeds, per-seed values",
    TABLE: "the same as a table, if training.log has csv",
    f"{EVENTS}/": "the same for TensorBoard, if training.log has tensorboard",
    f"{WANDB}/": "the run's id at Weights & Biases and its files, if training.log has wandb",
    f"{CHECKPOINTS}/": "the newest states and the best, to resume and to evaluate",
    RESULTS: "final scores; written last, so its presence shows that the training ended",
}

_README = """\
{agent} in {environment}, {seeds}, trained by accel_rl {version}:

  {command}

config.json     every setting; accel-rl train {agent} --config {folder}/config.json repeats it
metrics.jsonl   a row for each {period:,} environment steps
checkpoints/    the newest states of the training and the best one
results.json    what it is worth; there once the training has ended

Commands:

  accel-rl evaluate {folder}    greedy episodes of the final policy, or of the best
  accel-rl play {folder}        one episode, to look at
  accel-rl plot {folder}        its learning curve
  accel-rl report {folder}      all of it as a page that a browser opens
  accel-rl resume {folder}      go on, if it was stopped; --steps N trains longer
"""


class FolderLogger:
    """Logger that writes manifest, `config.json` and `README.txt` when the training starts.

    `train.run` begins loggers only after its checks: a refused training leaves these files alone.
    """

    def __init__(self, directory: Path, complete: Configuration, command: str):
        """Initialise with the folder, its configuration and the command line."""
        self._directory, self._complete, self._command = directory, complete, command
        self.started = False

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Write manifest, configuration and README; remove results until the training ends."""
        self.started = True
        directory, complete = self._directory, self._complete
        (directory / RESULTS).unlink(missing_ok=True)
        if not rows:
            begin(directory, "training", self._command, complete, FILES)
            text = _README.format(
                agent=complete.agent.name.replace("_", "-"),
                environment=complete.environment.name,
                seeds=f"{complete.training.seeds} seeds",
                version=__version__,
                command=self._command,
                folder=directory,
                period=complete.training.period,
            )
            with io.atomic_write(directory / README, "w") as file:
                file.write(text)
        else:
            continue_run(directory, self._command)
        write_json(directory / CONFIG, configuration.to_mapping(complete))

    def log(self, row: Row) -> None:
        """Do nothing: other loggers write rows."""

    def close(self) -> None:
        """Do nothing: no file is open."""


def begin(
    directory: Path, kind: Kind, command: str, complete: Configuration, files: Mapping[str, str]
) -> None:
    """Write the manifest of a training or a sweep, with the seeds of its configuration."""
    settings = complete.training
    seeds = range(settings.seed, settings.seed + settings.seeds)
    begin_run(directory, kind, command, seeds, files)


def loggers(directory: Path, complete: Configuration, bar: bool) -> list[io.Logger]:
    """Make the loggers that the configuration names, and a progress bar if `bar` is True."""
    make: dict[str, Json] = {
        "console": io.Console,
        "jsonl": lambda: io.JsonLines(directory / METRICS),
        "csv": lambda: io.Csv(directory / TABLE),
        "tensorboard": lambda: io.TensorBoard(directory / EVENTS),
        "wandb": lambda: io.WeightsAndBiases(
            directory / WANDB,
            project="accel-rl",
            name=directory.name,
            dir=str(directory),
            config=configuration.to_mapping(complete),
        ),
    }
    try:
        chosen = [make[name]() for name in complete.training.log]
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from error
    if bar and "console" not in complete.training.log:
        chosen.append(io.ProgressBar(complete.training.steps))
    return chosen


def checkpoints(directory: Path, complete: Configuration) -> io.Checkpoints:
    """Return the folder's checkpoints, with the best by evaluation."""
    settings = complete.checkpoints
    return io.Checkpoints(
        directory / CHECKPOINTS, every=settings.every, keep=settings.keep, best="evaluation"
    )


def writing(directory: Path) -> contextlib.AbstractContextManager[None]:
    """Return a context that locks the folder for this process, as a training does.

    Raises:
      BlockingIOError: on entry, if another process holds the lock.
    """
    return io.Checkpoints(directory / CHECKPOINTS).writing()


def read(directory: Path) -> Configuration:
    """Read the configuration of a training's folder."""
    require_kind(directory, "training")
    return configuration.from_mapping(layers.read(directory / CONFIG))


def read_rows(directory: Path) -> list[Row]:
    """Read the rows of `metrics.jsonl`, without a last line that a crash cut short."""
    import json

    path = directory / METRICS
    if not path.is_file():
        raise ValueError(f"{directory} has no {METRICS}: training.log was without jsonl")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
