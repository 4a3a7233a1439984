"""Modelled scaling of tabular training over DPUs, by time and by owner, and what limits it.

    python benchmarks/pim_scaling.py [--rows N] [--plot PATH]

Q-learning on random-policy logs of FrozenLake and Taxi, merged after each of 100 passes. Prints the
tables of `docs/cost-model.md`; `--plot` draws the scaling by owner with launches of other costs.
"""

import argparse
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from accel_rl import datasets, envs, pim, plot
from accel_rl.experiment import swiftrl
from accel_rl.experiment.tabular_run import TabularSettings
from accel_rl.io.atomic import atomic_write
from accel_rl.pim import cost, modelled

ROWS = 5_000_000
DPUS = (125, 2000)
PARTITIONS = ("time", "owner")
LAUNCHES = (0.0, 20e-6, 50e-6, 100e-6, 200e-6)

# Names of a table for the steps of a run.
_GROUPS = {
    "launches": ("kernel_launch",),
    "cycles": ("kernel_",),
    "program": ("program", "parameters"),
    "records": ("records", "lanes", "lists"),
    "pulls": ("merge_pull", "last_pull"),
    "pushes": ("merge_broadcast", "first_table", "merge_push", "first_push"),
    "host": (
        *("merge_host", "last_merge", "merge_expand", "last_expand"),
        *("merge_gather", "first_gather"),
    ),
}


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Modelled run on the fewest and the most DPUs."""

    few: cost.ModelledSeconds
    many: cost.ModelledSeconds
    ideal: float  # quotient of the numbers of DPUs

    @property
    def speedup(self) -> float:
        """Speed-up of all four parts."""
        return self.few.total / self.many.total

    @property
    def limit(self) -> tuple[str, float]:
        """Group of steps that loses most against ideal scaling, and the seconds it loses."""
        few, many = grouped(self.few.detail), grouped(self.many.detail)
        lost = {name: many[name] - few[name] / self.ideal for name in many}
        worst = max(lost, key=lambda name: lost[name])
        return worst, lost[worst]


def grouped(detail: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of groups of steps; the first group that a step fits has it."""
    found = dict.fromkeys(_GROUPS, 0.0)
    for step, seconds in detail.items():
        group = next(name for name, starts in _GROUPS.items() if step.startswith(starts))
        found[group] += seconds
    return found


def load(environment: str, rows: int) -> modelled.Load:
    """Collect a log by a uniformly random policy."""
    mdp = envs.make_mdp(environment)
    log = datasets.collect(mdp, "random", rows, seed=0, environment=environment)
    return modelled.load_of(log)


def scaling(log: modelled.Load, numerics: str, by: str) -> Scaling:
    """Model a log on the fewest and the most DPUs."""
    machine = pim.load_machine()
    few, many = (
        cost.modelled_seconds(
            machine,
            modelled.workload(machine, log, TabularSettings(numerics=numerics, by=by).kernel, dpus),
        )
        for dpus in DPUS
    )
    return Scaling(few, many, DPUS[1] / DPUS[0])


def comparison(logs: Mapping[str, modelled.Load]) -> Iterator[str]:
    """Yield the table of partitions: total times, their quotient, and what loses most."""
    heads = ("rows", "environment", "numerics", "by", "125 DPUs", "2,000 DPUs", "speed-up", "limit")
    yield f"| {' | '.join(heads)} |"
    yield "| --- " * len(heads) + "|"
    for environment, log in logs.items():
        for numerics in swiftrl.SCALING_NUMERICS:
            for by in PARTITIONS:
                found = scaling(log, numerics, by)
                limit, seconds = found.limit
                yield (
                    f"| {len(log) / 1e6:g} M | {_short(environment)} | {numerics} | {by} "
                    f"| {1e3 * found.few.total:,.0f} ms | {1e3 * found.many.total:,.0f} ms "
                    f"| {found.speedup:.1f} | {limit}, {1e3 * seconds:.0f} ms |"
                )


def sensitivity(logs: Mapping[str, modelled.Load]) -> Iterator[str]:
    """Yield the table of launches of other costs, by owner: milliseconds and speed-up."""
    heads = [f"{1e6 * each:g} us" for each in LAUNCHES]
    yield f"| environment | numerics | {' | '.join(heads)} | measured |"
    yield "| --- | --- |" + " --- |" * (len(heads) + 1)
    for environment, log in logs.items():
        for numerics in swiftrl.SCALING_NUMERICS:
            points = [found[-1] for found in other_launches(log, numerics, DPUS).values()]
            cells = [f"{1e3 * p.modelled.total:.0f} ms, {p.total_speedup:.1f}" for p in points]
            yield f"| {_short(environment)} | {numerics} | {' | '.join(cells)} |"


def _short(environment: str) -> str:
    return environment.split("-")[0]


def other_launches(
    log: modelled.Load, numerics: str, dpus: tuple[int, ...]
) -> dict[str, list[cost.ScalingPoint]]:
    """Return scaling by owner with launches of other costs, and with the machine's."""
    machine = pim.load_machine()
    run = modelled.workload(
        machine, log, TabularSettings(numerics=numerics, by="owner").kernel, dpus[0]
    )
    found = cost.launch_sensitivity(machine, run, LAUNCHES, dpus, log=log.sorted)
    measured = cost.strong_scaling(machine, run, dpus, log=log.sorted)
    return {f"{1e6 * each:g} us": points for each, points in found.items()} | {
        "39 us and 7.6 us a rank": measured
    }


def draw(logs: Mapping[str, modelled.Load], path: Path) -> None:
    """Draw scaling by owner with launches of other costs, INT32 with a power of two, as PNG."""
    with matplotlib.rc_context(plot.STYLE):
        figure = Figure(figsize=(10.0, 4.2), layout="constrained")
        figure.suptitle("By owner, INT32 with a power of two: what a launch costs (modelled)")
        row = figure.subplots(1, len(logs), squeeze=False)[0]
        for ax, (environment, log) in zip(row, logs.items(), strict=True):
            curves = {
                label: [point.modelled.total for point in points]
                for label, points in other_launches(log, "int32_pow2", swiftrl.SCALING_DPUS).items()
            }
            measured = list(curves)[-1]
            styles = {measured: {"color": "black", "linestyle": ":"}}
            plot.draw_scaling(ax, swiftrl.SCALING_DPUS, curves, styles=styles)
            ax.set_title(f"{environment}, {len(log):,} rows")
        with atomic_write(path) as file:
            figure.savefig(file, format="png", dpi=160)


def main() -> None:
    """Print the tables, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, metavar="N", help="transitions of a log")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the picture there (PNG)")
    options = parser.parse_args()
    logs = {name: load(name, options.rows) for name in swiftrl.ENVIRONMENTS}
    for table in (comparison, sensitivity):
        print("\n".join(table(logs)), end="\n\n")
    if options.plot:
        draw(logs, options.plot)


if __name__ == "__main__":
    main()
