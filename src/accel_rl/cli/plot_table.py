"""Pictures of a tabular run, for `accel-rl plot`."""

from pathlib import Path
from typing import TYPE_CHECKING

from accel_rl.cli import console

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(run: Path) -> "dict[str, Figure]":
    """Draw modelled time parts, and learning curve and policy if known, by file name.

    Raises:
      typer.BadParameter: if the folder does not hold a complete run.
    """
    from accel_rl.cli import pictures, table_folder
    from accel_rl.envs.registry import has_tables
    from accel_rl.io import run_folder

    with console.bad_input("RUN_DIR"):
        run_folder.require_kind(run, "table")
        results = run_folder.read_json(run, run_folder.RESULTS)
        history = run_folder.read_json(run, table_folder.HISTORY)
        table = table_folder.load_table(run)
    environment = results["environment"]
    label = f"{results['rule']}, {results['numerics']}, {results['order']}"
    where = f"{environment}, {results['dpus']:,} DPUs, {results['tasklets']} tasklets"
    found = {
        "time.png": pictures.parts_figure(
            f"Modelled time: {where}", {label: results["modelled_seconds"]}
        )
    }
    if history["episode_return"] is not None:
        found["curve.png"] = pictures.curve_figure(
            environment,
            history["passes"],
            history["episode_return"],
            label,
            results["optimal_return"],
        )
    if table.environment is not None and has_tables(table.environment, drawn=True):
        found["policy.png"] = pictures.policy_figure(
            table.environment, table.values, f"{label}, {results['dpus']:,} DPUs"
        )
    return found
