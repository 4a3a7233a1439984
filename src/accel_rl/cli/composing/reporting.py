"""What a folder says of its plan and its run, as JSON and as tables."""

from pathlib import Path
from typing import Any

from accel_rl.cli import console
from accel_rl.cli.composing import folder

SHOWN = 12  # mappings in the table; all are in `plan.json`


def read(directory: Path) -> dict[str, Any]:
    """The plan, and the run if there is one.

    Raises:
      OSError: if there is no plan.
      ValueError: if a file is damaged.
    """
    plan = folder.read_json(directory / folder.PLAN)
    path = directory / folder.RUN
    run = folder.read_json(path) if path.exists() else None
    pictures = sorted(str(each) for each in directory.glob("*.png"))
    return {"folder": str(directory), "plan": plan, "run": run, "pictures": pictures}


def show(found: dict[str, Any]) -> None:
    """Prints both as tables."""
    plan, run = found["plan"], found["run"]
    estimates = plan["estimates"]
    console.print_table(
        f"Predicted, best {plan['objective']} first ({len(estimates)} mappings, of those that "
        "differ in names of like devices one)",
        ("mapping", "iteration, us", "samples/s", "samples/J", "costs"),
        [
            (
                each["name"],
                f"{each['predicted_iteration_seconds'] * 1e6:,.0f}",
                f"{each['predicted_samples_per_second']:,.0f}",
                _number(each["modelled_samples_per_joule"]),
                each["costs"],
            )
            for each in estimates[:SHOWN]
        ],
    )
    refused = [
        (role, device, why)
        for role, whys in plan["refused"].items()
        for device, why in whys.items()
    ]
    if refused:
        console.print_table("Not offered", ("role", "device", "why"), refused, numbers_from=3)
    if run is not None:
        rows = [
            ("mapping", run["name"]),
            ("environment steps", f"{run['steps']:,} ({run['ended']})"),
            ("iteration, predicted", _time(run["predicted_iteration_seconds"])),
            ("iteration, measured", _time(run["measured_iteration_seconds"])),
            ("return of episodes at the end", _number(run["episode_return"])),
            *(
                (each["boundary"], f"{each['measured_joules']:,.1f} J")
                for each in run["measured_joules"]
            ),
            *(
                (each["boundary"], f"no joules: {each['reason']}")
                for each in run["joules_unreadable"]
            ),
        ]
        if run["simulated"]:
            rows.insert(1, ("simulated", "the host stood in for devices that cannot run"))
        console.print_table("Run", ("", ""), rows)
    for path in found["pictures"]:
        console.print_line(path)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.0f} us"
