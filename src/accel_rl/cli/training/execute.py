"""Execution of trainings, their results, and tables of scores."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from accel_rl import train
from accel_rl.cli import console, folders
from accel_rl.cli.training import folder, values
from accel_rl.cli.training.assemble import Assembly
from accel_rl.cli.training.configuration import Configuration
from accel_rl.io.loggers import Row

# Statistics of the seeds' scores: names in results, headings in tables.
FIGURES = {
    "mean": "mean",
    "interquartile_mean": "inter-quartile mean",
    "lowest": "lowest seed",
    "highest": "highest seed",
}


def check(assembly: Assembly) -> None:
    """Check all arguments of a training before anything is written.

    Raises:
      ValueError: if a number is out of range.
    """
    complete = assembly.configuration
    train.segments(assembly.program.schedule, complete.training.steps, complete.training.period)
    evaluation(complete)
    seeds(complete)
    folder.checkpoints(Path(), complete)
    folder.loggers(Path(), complete, bar=False)


def evaluation(complete: Configuration) -> train.Evaluation:
    """Return the evaluation settings for `train.run`."""
    settings = complete.evaluation
    return train.Evaluation(settings.episodes, settings.every, settings.max_steps)


def seeds(complete: Configuration) -> dict[str, Any]:
    """Return arguments of `train.over_seeds`, checked."""
    training = complete.training
    arguments: dict[str, Any] = {"strategy": training.strategy}
    if training.chunk is not None:
        arguments["chunk"] = training.chunk
    train.over_seeds(lambda key: key, **arguments)  # only checks the arguments
    return arguments


def run(
    directory: Path, assembly: Assembly, command: str, *, resume: bool, bar: bool
) -> dict[str, Any]:
    """Train, and write metrics, checkpoints and results into a folder.

    Args:
      directory: the folder; created if absent.
      assembly: what to train.
      command: the command line, for records.
      resume: continue from the newest checkpoint in the folder.
      bar: show a progress bar on stderr.

    Returns:
      The content of `results.json`, which is written unless the training was interrupted.

    Raises:
      typer.BadParameter: if the folder holds another training, or a damaged one.
      OSError: if a file cannot be written.
    """
    complete = assembly.configuration
    record = folder.Record(directory, complete, command)
    target, scale = complete.evaluation.stop_at, complete.environment.reward_scale
    rule = None
    if target is not None:
        reached = train.stop_at("evaluation", target, every_seed=True)

        def rule(rows: Sequence[Row]) -> str | None:
            return reached([folder.unscaled(rows[-1], scale)])

    began = time.perf_counter()
    try:
        outcome = train.run(
            assembly.program,
            assembly.key,
            complete.training.steps,
            period=complete.training.period,
            hyper=assembly.hyper,
            seeds=seeds(complete),
            evaluation=evaluation(complete),
            stop=rule,
            loggers=[record, *folder.loggers(directory, complete, bar)],
            checkpoints=folder.checkpoints(directory, complete),
            resume=resume,
            stop_diverged=not complete.sweep,  # one combination must not end the others
        )
    except ValueError as error:
        if record.started:  # past all checks of user input: a bug, which keeps its traceback
            raise
        raise typer.BadParameter(str(error), param_hint="RUN_DIR") from error
    rows = [folder.unscaled(row, scale) for row in outcome.rows]
    results = {
        **summary(complete, rows),
        "reason": outcome.reason,
        "command": command,
        "wall_seconds": round(time.perf_counter() - began, 3),
        **folders.made_with(),
    }
    if outcome.reason != "interrupted":
        folders.write_json(directory / folder.RESULTS, results)
    return results


def summary(complete: Configuration, rows: list[Row]) -> dict[str, Any]:
    """Summarise a training by its last row."""
    last = rows[-1]
    return {
        "environment": complete.environment.name,
        "agent": complete.agent.name,
        "sampler": complete.replay.sampler,
        "steps": last["steps"],
        "seeds": complete.training.seeds,
        "episodes": complete.evaluation.episodes,
        "trainings": [
            {"settings": settings, **figures(scores)}
            for settings, scores in zip(
                complete.combinations(), per_combination(complete, last, "evaluation"), strict=True
            )
        ],
        "training_seconds": round(last["seconds"], 3),
    }


def figures(scores: Any) -> dict[str, Any]:
    """Compute statistics of the seeds' scores [seeds]; None if any score is not finite."""
    from accel_rl.plot import interquartile_mean  # late: it imports matplotlib

    array = np.asarray(scores, np.float64)
    known = bool(np.isfinite(array).all())
    found = {
        "mean": array.mean(),
        "interquartile_mean": interquartile_mean(array) if known else np.nan,
        "lowest": array.min(),
        "highest": array.max(),
    }
    shown = {name: float(each) if known else None for name, each in found.items()}
    return {**shown, "per_seed": [float(each) if np.isfinite(each) else None for each in array]}


def per_combination(complete: Configuration, row: Row, name: str) -> np.ndarray:
    """Return a metric of a row as [combinations, seeds]; NaN where the row has null."""
    found = row["per_seed"][name] if "per_seed" in row else [row[name]]
    array = np.array([np.nan if each is None else each for each in found], np.float64)
    return array.reshape(len(complete.combinations()), complete.training.seeds)


def report(directory: Path, results: dict[str, Any]) -> None:
    """Print the scores of a training."""
    print_figures(results)
    seconds = results["training_seconds"]
    console.print_line(f"{results['reason']}, {seconds:.1f} s of training, in {directory}")


def print_figures(results: dict[str, Any]) -> None:
    """Print the table of scores, with a column of steps where steps differ."""
    shared = results["steps"] is not None
    rows = [
        (
            " ".join(f"{name}={values.text(of)}" for name, of in each["settings"].items()),
            *(() if shared else (f"{each['steps']:,}",)),
            *(number(each[name]) for name in FIGURES),
        )
        for each in results["trainings"]
    ]
    console.print_table(
        heading(results),
        ("", *(() if shared else ("steps",)), *FIGURES.values()),
        rows,
    )


def in_common(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that all tables share; None for a name whose values differ."""
    first = found[0]
    return {
        name: value if all(each[name] == value for each in found) else None
        for name, value in first.items()
    }


def heading(results: dict[str, Any]) -> str:
    """Return the title of a table of scores, without entries that are None as rows differ."""
    said = {
        "environment": " in {}",
        "steps": ", {:,} steps",
        "seeds": ", seeds: {}",
        "episodes": "; means of {:,} greedy episodes",
    }
    parts = [text.format(results[name]) for name, text in said.items() if results[name] is not None]
    return results["agent"] + "".join(parts)


def number(value: float | None) -> str:
    """Format a score for tables."""
    return "none" if value is None else f"{value:.2f}"


def finish(directory: Path, results: dict[str, Any], json: bool) -> None:
    """Print the results of a training, and exit with a code unless it is done.

    Raises:
      typer.Exit: with 1 if it diverged, 130 if it was interrupted.
    """
    reason = results["reason"]
    if reason == "interrupted":
        console.note(f"accel-rl: after {results['steps']:,} steps: accel-rl resume {directory}")
        raise typer.Exit(130)
    if reason.startswith("diverged"):
        console.note(f"accel-rl: {reason}")
        raise typer.Exit(1)
    if json:
        console.print_json({"run": str(directory), **results})
    else:
        report(directory, results)
