"""Planning of mappings, and the files and pictures of a plan."""

import contextlib
import dataclasses
import itertools
from pathlib import Path

from matplotlib.figure import Figure

from accel_rl import compose, plot
from accel_rl.cli import clearing, console, pictures
from accel_rl.cli.composing import folder
from accel_rl.compose import Estimate, Mapping, Plan, roofline
from accel_rl.compose import cache as costs
from accel_rl.compose import mapping as mappings
from accel_rl.compose.costs import Key
from accel_rl.compose.devices import find
from accel_rl.compose.placing import executable, program_for, stand_ins
from accel_rl.compose.profile import Progress
from accel_rl.compose.workload import STEPS
from accel_rl.experiment import Experiment
from accel_rl.experiment.configuration import to_mapping
from accel_rl.io import atomic_write, run_folder
from accel_rl.io.values import Json

TIMELINE, PARETO, ROOFLINE = "timeline.png", "pareto.png", "roofline.png"


def plan(experiment: Experiment, *, cache: bool, progress: Progress) -> Plan:
    """Plan mappings, with cached costs if `cache` is True; save measured costs in the cache.

    The best has run for a moment. Where that does not confirm what the cache predicts, all is
    measured again.

    Raises:
      ValueError: if a device is unknown, or no mapping is possible; the message says why.
    """
    known = costs.load(experiment) if cache else None
    found, surprises = compose.confirm(compose.plan(experiment, costs=known, progress=progress))
    if surprises and known is not None:
        console.note(f"accel-rl: {surprises[0]}: what the cache holds is measured again")
        found, surprises = compose.confirm(compose.plan(experiment, progress=progress))
    for each in surprises:
        console.note(f"accel-rl: {each}, and the plan has what it took")
    with contextlib.suppress(OSError):  # a read-only home: no cache
        costs.save(found.costs, experiment)
    return found


def write_plan(directory: Path, found: Plan, command: str) -> None:
    """Write manifest, configuration, mapping and plan; remove an earlier run and its pictures."""
    clearing.clear(directory)
    config = found.experiment.configuration
    run_folder.begin_run(directory, "plan", command, [config.training.seed], folder.FILES)
    for stale in (folder.MEASURED, TIMELINE, PARETO, ROOFLINE):
        (directory / stale).unlink(missing_ok=True)
    best = found.best
    run_folder.write_json(directory / run_folder.CONFIG, to_mapping(config))
    table = mappings.to_table(best.mapping)
    with atomic_write(directory / folder.MAPPING, "w") as file:
        file.write(mappings.toml_text(table))
    shown = {
        "objective": config.compose.objective,
        "power": {name: dataclasses.asdict(watts) for name, watts in found.power.items()},
        "refused": {role: dict(why) for role, why in found.refused.items() if why},
        "estimates": [
            {**estimate_table(each), "stretch": found.costs.stretched(each.mapping)}
            for each in found.estimates
        ],
        "predicted_timeline": [list(span) for span in best.timeline],
        "steps": [
            {
                "step": "+".join(key.steps),
                "devices": list(key.devices),
                "seconds": cost.seconds,
                "spread": cost.spread,
                "source": cost.source,
            }
            for key, cost in itertools.chain(
                found.costs.steps.items(), found.costs.fused_iterations.items()
            )
        ],
        "slowdowns": [
            {"step": step, "beside": other, "devices": list(devices), "factor": factor}
            for ((step, other), devices), factor in _slowdowns(found).items()
        ],
        "handoff_seconds": found.costs.handoff,
        "bookkeeping_seconds": found.costs.bookkeeping,
        "stretch": dict(found.costs.stretch),
        "links": {name: dataclasses.asdict(link) for name, link in found.costs.links.items()},
        "group": found.costs.group,
        **run_folder.made_with(),
    }
    run_folder.write_json(directory / folder.PLAN, shown)


def _slowdowns(found: Plan) -> dict[Key, float]:
    """Return the slowdowns that the estimates use; the costs may hold more."""
    split = [each.mapping for each in found.estimates if each.mapping.executor != "fused"]
    used = {
        found.costs.key(mapping, *pair)
        for mapping in split
        for pair in itertools.permutations(STEPS, 2)
    }
    return {key: value for key, value in found.costs.slowdowns.items() if key in used}


def estimate_table(estimate: Estimate) -> dict[str, Json]:
    """Convert an estimate to a JSON table."""
    return {
        "mapping": mappings.to_table(estimate.mapping),
        "name": str(estimate.mapping),
        "predicted_iteration_seconds": estimate.seconds,
        "predicted_samples_per_second": estimate.throughput,
        "modelled_joules": estimate.joules,
        "modelled_samples_per_joule": estimate.samples_per_joule,
        "costs": estimate.source,
        "busy_seconds": dict(estimate.busy),
    }


def draw(directory: Path, found: Plan) -> None:
    """Draw a plan's timeline, its Pareto front if power is known, and a roofline."""
    best = found.best
    if best.timeline:
        figure = pictures.new_figure(9, 3.2, f"Predicted: {best.mapping}")
        plot.draw_timeline(
            figure.subplots(), best.timeline, seconds=4 * best.seconds, title=_source(best)
        )
        pictures.save(figure, directory / TIMELINE)
    if all(each.joules is not None for each in found.estimates):
        figure = pictures.new_figure(7, 4.5)
        points = {
            str(each.mapping): (each.throughput, each.samples_per_joule or 0.0)
            for each in found.estimates
        }
        front = {str(e.mapping): points[str(e.mapping)] for e in compose.pareto(found.estimates)}
        plot.draw_pareto(figure.subplots(), points, front, title="Predicted")
        pictures.save(figure, directory / PARETO)
    pictures.save(_roofline(found), directory / ROOFLINE)


def _roofline(found: Plan) -> Figure:
    """Draw the roofline of the learner's device, or its stand-in, with the steps on it."""
    experiment = found.experiment
    devices = find(experiment.configuration.compose.devices)
    device = stand_ins(found.best.mapping, devices).learner[0]
    alone = Mapping("deterministic", device, device, device, (device,))
    counts = roofline.counted(program_for(experiment, alone, devices), experiment.hyper)
    limits = roofline.peaks(executable(devices, device).jax_device)
    figure = pictures.new_figure(6.5, 4.2)
    plot.draw_roofline(
        figure.subplots(),
        roofline.reached(device, counts, found.costs),
        peak_flops=limits.flops,
        bandwidth=limits.bandwidth,
        title=f"Steps as dispatched one by one, {device}",
    )
    return figure


def _source(estimate: Estimate) -> str:
    """Describe the costs behind a predicted timeline."""
    if estimate.source == "measured":
        return "simulated from measured steps"
    return f"simulated from steps of which some are {estimate.source}"
