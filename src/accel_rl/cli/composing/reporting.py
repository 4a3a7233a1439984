"""Plan and run of a folder, as JSON and as tables."""

from pathlib import Path

from accel_rl.cli import console
from accel_rl.cli.composing import folder
from accel_rl.io.values import Json

SHOWN = 12  # most mappings in the table; all are in `plan.json`

# Keys that are read from the files, and the types of their values.
_NUMBER = (int, float)
_MAYBE = (int, float, type(None))
_PLAN: folder.Kinds = {
    "objective": str,
    "estimates": list,
    "refused": dict,
    "slowdowns": list,
    "handoff_seconds": _NUMBER,
    "bookkeeping_seconds": _NUMBER,
    "stretch": dict,
    "links": dict,
    "group": (int, type(None)),
}
_ESTIMATE: folder.Kinds = {
    "mapping": dict,
    "name": str,
    "predicted_iteration_seconds": _NUMBER,
    "predicted_samples_per_second": _NUMBER,
    "modelled_samples_per_joule": _MAYBE,
    "stretch": _MAYBE,
    "costs": str,
}
_SLOWDOWN: folder.Kinds = {"step": str, "beside": str, "devices": list, "factor": _NUMBER}
_RUN: folder.Kinds = {
    "name": str,
    "steps": int,
    "ended": str,
    "simulated": bool,
    "predicted_iteration_seconds": _MAYBE,
    "measured_iteration_seconds": _MAYBE,
    "measured_joules": list,
    "joules_unreadable": list,
    "episode_return": _MAYBE,
}


def read(directory: Path) -> dict[str, Json]:
    """Read the plan, the run if there is one, and the names of pictures.

    Raises:
      OSError: if there is no plan.
      ValueError: if a file is damaged or lacks a key; the message names file and key.
    """
    plan = read_plan(directory)
    run = _read_run(directory / folder.RUN)
    pictures = sorted(str(each) for each in directory.glob("*.png"))
    return {"folder": str(directory), "plan": plan, "run": run, "pictures": pictures}


def read_plan(directory: Path) -> dict[str, Json]:
    """Read the plan; errors as in `read`."""
    path = directory / folder.PLAN
    plan = folder.read_json(path)
    folder.check_keys(path, plan, _PLAN)
    for name, wanted in (("estimates", _ESTIMATE), ("slowdowns", _SLOWDOWN)):
        _check_each(path, plan, name, wanted)
    folder.check_keys(path, plan["refused"], dict.fromkeys(plan["refused"], dict), "refused")
    folder.check_keys(path, plan["stretch"], dict.fromkeys(plan["stretch"], _NUMBER), "stretch")
    folder.check_keys(path, plan["links"], dict.fromkeys(plan["links"], dict), "links")
    for name, link in plan["links"].items():
        folder.check_keys(
            path, link, dict.fromkeys(("latency", "bandwidth"), _NUMBER), f"links.{name}"
        )
    return plan


def _read_run(path: Path) -> dict[str, Json] | None:
    if not path.exists():
        return None
    run = folder.read_json(path)
    folder.check_keys(path, run, _RUN)
    _check_each(path, run, "measured_joules", {"boundary": str, "measured_joules": _NUMBER})
    _check_each(path, run, "joules_unreadable", {"boundary": str, "reason": str})
    return run


def _check_each(path: Path, table: dict[str, Json], name: str, wanted: folder.Kinds) -> None:
    for number, each in enumerate(table[name]):
        folder.check_keys(path, each, wanted, f"{name}[{number}]")


def show(found: dict[str, Json]) -> None:
    """Print plan and run as tables."""
    plan, run = found["plan"], found["run"]
    estimates = plan["estimates"]
    most = f", of which {SHOWN} are shown" if len(estimates) > SHOWN else ""
    console.print_table(
        f"Predicted, best {plan['objective']} first ({len(estimates)} mappings{most}; of those "
        "that differ in names of like devices one)",
        ("mapping", "iteration, us", "samples/s", "samples/J", "stretch", "costs"),
        [
            (
                each["name"],
                f"{each['predicted_iteration_seconds'] * 1e6:,.0f}",
                f"{each['predicted_samples_per_second']:,.0f}",
                _number(each["modelled_samples_per_joule"]),
                _number(each["stretch"]),
                each["costs"],
            )
            for each in estimates[:SHOWN]
        ],
    )
    console.print_table("Besides the steps, predictions rest on", ("", ""), _beyond(plan))
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


def _beyond(plan: dict[str, Json]) -> list[tuple[str, str]]:
    """Return the quantities that predictions depend on, other than durations of steps."""
    rows = [
        ("hand-off to a worker that waits", _time(plan["handoff_seconds"])),
        ("bookkeeping around a step", _time(plan["bookkeeping_seconds"])),
        *(
            (f"stretch of {name}, median of trials", f"{value:.3g}")
            for name, value in plan["stretch"].items()
        ),
    ]
    rows += [
        (f"link to {name}", f"{_time(link['latency'])} + {link['bandwidth'] / 1e9:.3g} GB/s")
        for name, link in plan["links"].items()
    ]
    if plan["group"] is not None:
        rows.append(("updates in a call of sample and of learn", str(plan["group"])))
    if plan["slowdowns"]:
        most = max(plan["slowdowns"], key=lambda each: each["factor"])
        what = f"largest slowdown, {most['step']} beside {most['beside']}"
        rows.append((what, f"{most['factor']:.3g}"))
    return rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.0f} us"
