"""Trainings from start to results, and what is said of them."""

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

# Of the seeds' scores, by their names in results, and in tables.
FIGURES = {
    "mean": "mean",
    "interquartile_mean": "inter-quartile mean",
    "lowest": "lowest seed",
    "highest": "highest seed",
}


def check(assembly: Assembly) -> None:
    """Refuses, before anything is written, what a training would refuse.

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
    """When a training is evaluated."""
    settings = complete.evaluation
    return train.Evaluation(settings.episodes, settings.every, settings.max_steps)


def seeds(complete: Configuration) -> dict[str, Any]:
    """How trainings share the devices, for `train.over_seeds`."""
    training = complete.training
    arguments: dict[str, Any] = {"strategy": training.strategy}
    if training.chunk is not None:
        arguments["chunk"] = training.chunk
    train.over_seeds(lambda key: key, **arguments)
    return arguments


def run(
    directory: Path, assembly: Assembly, command: str, *, resume: bool, bar: bool
) -> dict[str, Any]:
    """Trains, into a folder.

    Args:
      directory: the folder; made where it is absent.
      assembly: what to train.
      command: as it was given.
      resume: go on from the newest checkpoint in the folder.
      bar: show progress on stderr.

    Returns:
      What `results.json` holds; it is written unless the training was interrupted.

    Raises:
      typer.BadParameter: if what is in the folder is of another training, or damaged.
      OSError: if a file cannot be written, ...
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
        if record.started:  # a defect of ours: it keeps its traceback
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
    """The figures of a training, from its rows."""
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
    """Mean, inter-quartile mean, least and greatest of the seeds' scores, None where one is NaN."""
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
    """A metric as [combinations, seeds]; NaN where a row has null."""
    found = row["per_seed"][name] if "per_seed" in row else [row[name]]
    array = np.array([np.nan if each is None else each for each in found], np.float64)
    return array.reshape(len(complete.combinations()), complete.training.seeds)


def report(directory: Path, results: dict[str, Any]) -> None:
    """Says what a training is worth."""
    print_figures(results)
    seconds = results["training_seconds"]
    console.print_line(f"{results['reason']}, {seconds:.1f} s of training, in {directory}")


def print_figures(results: dict[str, Any]) -> None:
    """Prints the table of scores, with the steps of each where they are not of the same."""
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
    """What tables have in common: values of the first, None where another has another."""
    first = found[0]
    return {
        name: value if all(each[name] == value for each in found) else None
        for name, value in first.items()
    }


def heading(results: dict[str, Any]) -> str:
    """What a table of scores is of; what its rows differ in is None and left to them."""
    said = {
        "environment": " in {}",
        "steps": ", {:,} steps",
        "seeds": ", seeds: {}",
        "episodes": "; means of {:,} greedy episodes",
    }
    parts = [text.format(results[name]) for name, text in said.items() if results[name] is not None]
    return results["agent"] + "".join(parts)


def number(value: float | None) -> str:
    """A figure as tables show it."""
    return "none" if value is None else f"{value:.2f}"


def finish(directory: Path, results: dict[str, Any], json: bool) -> None:
    """Prints what came of a training, and leaves with the exit code that says how it ended.

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
