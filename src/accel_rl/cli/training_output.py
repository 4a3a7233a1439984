"""Results of trainings, sweeps and tabular runs on the terminal, and exit codes."""

import shlex
from pathlib import Path

import typer

from accel_rl.cli import console
from accel_rl.experiment import words
from accel_rl.io.values import Json

# Statistics of the seeds' scores: names in results, headings in tables.
_FIGURES = {
    "mean": "mean",
    "interquartile_mean": "inter-quartile mean",
    "lowest": "lowest seed",
    "highest": "highest seed",
}


def finish_training(directory: Path, results: dict[str, Json], json: bool) -> None:
    """Print the results of a training; exit with 1 if it diverged, 130 if it was interrupted."""
    _exit_unless_done(directory, results)
    if json:
        console.print_json({"run": str(directory), **results})
        return
    print_scores(results)
    seconds = results["training_seconds"]
    typer.echo(f"{results['reason']}, {seconds:.1f} s of training, in {directory}")


def finish_sweep(directory: Path, results: dict[str, Json], json: bool) -> None:
    """Print the results of a sweep and its best settings; exit with 130 if interrupted."""
    _exit_unless_done(directory, results)
    if json:
        console.print_json({"run": str(directory), **results})
        return
    names = list(results["combinations"][0]["settings"])
    rows = [
        (
            *(words.text(each["settings"][name]) for name in names),
            *(_number(each[name]) for name in _FIGURES),
            "best" if each["best"] else "",
        )
        for each in results["combinations"]
    ]
    console.print_table(_title(results), (*names, *_FIGURES.values(), ""), rows, numbers_from=0)
    if results["best"] is not None:
        typer.echo(f"best: {words.assignments(results['best'])}")
    typer.echo(f"{results['training_seconds']:.1f} s of training, in {directory}")


def print_table_run(directory: Path, results: dict[str, Json]) -> None:
    """Print the results of a tabular run."""
    worth = results["episode_return"]
    score = (
        ("return", "not known: no environment to score in")
        if worth is None
        else (
            "return, exact",
            f"{worth:.3f} per episode; {results['optimal_return']:.3f} at best, by a policy that "
            "may go by the steps left",
        )
    )
    rows = [
        score,
        *(
            (f"{name.replace('_', ' ')}, modelled", f"{1e3 * seconds:.3f} ms")
            for name, seconds in results["modelled_seconds"].items()
        ),
        ("modelled from", results["modelled_from"]),
        ("trained by backend", results["trained_by"]),
        ("emulation, measured", f"{results['measured_seconds']:.2f} s"),
        ("folder", directory),
    ]
    title = (
        f"{results['rule']}, {results['numerics']}, {results['order']}: {results['environment']} "
        f"on {results['dpus']:,} DPUs by {results['by']}, {results['tasklets']} tasklets"
    )
    console.print_table(title, ("", ""), rows)
    if worth is None:
        typer.echo(
            f"{results['environment']} is none of this library's environments, the only ones that "
            f"--env takes. `accel-rl report {shlex.quote(str(directory))}` shows what was learned."
        )


def print_scores(results: dict[str, Json]) -> None:
    """Print the table of scores, with a column of steps where steps differ."""
    shared = results["steps"] is not None
    rows = [
        (
            words.assignments(each["settings"]),
            *(() if shared else (f"{each['steps']:,}",)),
            *(_number(each[name]) for name in _FIGURES),
        )
        for each in results["trainings"]
    ]
    console.print_table(
        _title(results), ("", *(() if shared else ("steps",)), *_FIGURES.values()), rows
    )


def _exit_unless_done(directory: Path, results: dict[str, Json]) -> None:
    reason = results["reason"]
    if reason == "interrupted":
        console.note(f"accel-rl: after {results['steps']:,} steps: accel-rl resume {directory}")
        raise typer.Exit(130)
    if reason.startswith("diverged"):
        console.note(f"accel-rl: {reason}")
        raise typer.Exit(1)


def _title(results: dict[str, Json]) -> str:
    """Return the title of a table of scores, without entries that are None as rows differ."""
    said = {
        "environment": " in {}",
        "steps": ", {:,} steps",
        "seeds": ", seeds: {}",
        "episodes": "; means of {:,} greedy episodes",
    }
    parts = [text.format(results[name]) for name, text in said.items() if results[name] is not None]
    return results["agent"] + "".join(parts)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
