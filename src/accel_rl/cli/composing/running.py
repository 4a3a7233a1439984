"""Runs of a folder's mapping, and their files."""

import contextlib
import dataclasses
import math
from pathlib import Path
from typing import Any

import jax

from accel_rl import compose, plot
from accel_rl.cli import console, pictures, runtime
from accel_rl.cli.composing import folder, reporting
from accel_rl.compose import Estimate, Mapping, Ran, Surprise
from accel_rl.compose import cache as costs
from accel_rl.compose import mapping as mappings
from accel_rl.compose.profile import Progress
from accel_rl.compose.trials import agree
from accel_rl.compose.workload import workload_of
from accel_rl.experiment import Experiment
from accel_rl.io import JsonLines, run_folder
from accel_rl.io.values import Json

ITERATIONS = 4  # in a timeline picture


def run(
    directory: Path,
    experiment: Experiment,
    mapping: Mapping,
    *,
    steps: int,
    seed: int,
    simulate: bool,
    restarts: int,
    progress: Progress,
) -> Ran:
    """Train, and write measured times beside predicted ones."""
    plan = reporting.read_plan(directory)  # fails before the training, not after it
    runtime.import_gymnax()
    rows: list[dict[str, Json]] = []
    metrics = JsonLines(directory / folder.METRICS)

    def on_row(row: Any) -> None:
        if not rows:  # not earlier: a refused run leaves the files of the last one
            (directory / folder.RUN).unlink(missing_ok=True)
            metrics.begin([])
        rows.append({name: value for name, value in row.items() if name != "per_seed"})
        metrics.log(rows[-1])
        progress(f"{row['steps']:,} steps", row["steps"], steps)

    with contextlib.closing(metrics):
        ran = compose.run(
            experiment,
            mapping,
            jax.random.key(seed),
            steps,
            simulate=simulate,
            restarts=restarts,
            on_row=on_row,
        )
    predicted = _predicted(experiment, mapping)
    _draw(directory, ran, predicted)
    expected = _planned(plan, mapping) if predicted is None else predicted.seconds
    has_time = not ran.simulated and math.isfinite(ran.seconds)
    if has_time and expected is not None and not agree(expected, ran.seconds, ran.spread):
        surprise = Surprise(mapping, expected, ran.seconds)
        console.note(f"accel-rl: {surprise}: plan again, on a machine as busy as this one")
    returns = [row["episode_return"] for row in rows if row["episodes"]]
    run_folder.write_json(
        directory / folder.RUN,
        {
            "mapping": mappings.to_table(mapping),
            "name": str(mapping),
            "steps": ran.rows[-1]["steps"] if ran.rows else 0,
            "ended": ran.ended,
            "seed": seed,
            "simulated": ran.simulated,
            # Times of a simulated run are the host's, not the mapping's.
            "measured_iteration_seconds": None if ran.simulated else _plain(ran.seconds),
            "measured_spread_seconds": None if ran.simulated else _plain(ran.spread),
            "predicted_iteration_seconds": expected,
            "measured_joules": [dataclasses.asdict(each) for each in ran.readings],
            "joules_unreadable": [dataclasses.asdict(each) for each in ran.unreadable],
            "episode_return": returns[-1] if returns else None,
            **run_folder.made_with(),
        },
    )
    return ran


def _predicted(experiment: Experiment, mapping: Mapping) -> Estimate | None:
    """Estimate a mapping from cached measurements; return None if they do not cover it."""
    known = costs.load(experiment)
    if known is None:
        return None
    samples = workload_of(experiment).trained_samples
    try:
        return compose.estimate(mapping, known, experiment.program.schedule, samples)
    except KeyError:
        return None


def _planned(plan: dict[str, Json], mapping: Mapping) -> float | None:
    """Return the iteration time in the folder's plan, or None; covers modelled devices too."""
    table = mappings.to_table(mapping)
    found = [e["predicted_iteration_seconds"] for e in plan["estimates"] if e["mapping"] == table]
    return found[0] if found else None


def _draw(directory: Path, ran: Ran, predicted: Estimate | None) -> None:
    path = directory / folder.MEASURED
    path.unlink(missing_ok=True)
    if not ran.timeline or ran.simulated:
        return
    both = predicted is not None and bool(predicted.timeline)
    seconds = ITERATIONS * (ran.seconds if math.isfinite(ran.seconds) else 1e-3)
    figure = pictures.new_figure(9, 5.6 if both else 3.2, str(ran.mapping))
    grid = figure.subplots(2 if both else 1, 1, squeeze=False)
    plot.draw_timeline(grid[-1, 0], ran.timeline, seconds=seconds, title="Measured")
    if both:
        assert predicted is not None
        plot.draw_timeline(grid[0, 0], predicted.timeline, seconds=seconds, title="Predicted")
    pictures.save(figure, path)


def _plain(value: object) -> Any:
    """Replace a float that is not finite by None, as JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
