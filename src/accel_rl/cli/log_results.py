"""Results of training on a log, for `results.json` and the terminal."""

import shlex
from pathlib import Path

from accel_rl import tabular
from accel_rl.cli import console
from accel_rl.experiment import tabular_run
from accel_rl.experiment.tabular_run import Outcome, TabularSettings
from accel_rl.io.values import Json
from accel_rl.types import MDP


def gather(
    environment: str,
    settings: TabularSettings,
    outcome: Outcome,
    seconds: dict[str, float],
    mdp: MDP | None,
) -> dict[str, Json]:
    """Collect the results of a run; returns are None without the environment's tables."""
    final = None if outcome.returns is None else float(outcome.returns[-1])
    best = None if mdp is None else float(tabular.optimal_return(mdp, tabular_run.horizon_of(mdp)))
    return {
        **tabular_run.record(environment, settings, final, seconds),
        "optimal_return": best,
        "horizon": None if mdp is None else tabular_run.horizon_of(mdp),
        "tasklets": settings.tasklets,
        "effective": outcome.effective,
        "measured_seconds": round(outcome.measured_seconds, 3),
    }


def show(directory: Path, results: dict[str, Json]) -> None:
    """Print the results of a run as a table."""
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
        f"on {results['dpus']:,} DPUs, {results['tasklets']} tasklets"
    )
    console.print_table(title, ("", ""), rows)
    if worth is None:
        console.print_line(
            f"{results['environment']} is none of this library's environments, the only ones that "
            f"--env takes. `accel-rl report {shlex.quote(str(directory))}` shows what was learned."
        )
