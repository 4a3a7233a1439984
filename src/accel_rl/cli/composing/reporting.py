"""Plan and run of a folder, as JSON and as tables."""

import dataclasses
from pathlib import Path
from typing import Any

import pydantic
import typer

from accel_rl.cli import console
from accel_rl.cli.composing import folder
from accel_rl.io import run_folder
from accel_rl.io.validation import validated
from accel_rl.io.values import Json

SHOWN = 12  # most mappings in the table; all are in `plan.json`


@dataclasses.dataclass(frozen=True)
class _SavedEstimate:
    mapping: dict[str, Json]
    name: str
    predicted_iteration_seconds: float
    predicted_samples_per_second: float
    modelled_samples_per_joule: float | None
    stretch: float
    costs: str


@dataclasses.dataclass(frozen=True)
class _SavedSlowdown:
    step: str
    beside: str
    devices: list[str]
    factor: float


@dataclasses.dataclass(frozen=True)
class _SavedLink:
    latency: float
    bandwidth: float


@dataclasses.dataclass(frozen=True)
class _SavedPower:
    idle: float
    active: float
    status: str
    source: str


@dataclasses.dataclass(frozen=True)
class _SavedPlan:
    """Keys of `plan.json` that are read; there are more."""

    __pydantic_config__ = pydantic.ConfigDict(strict=True)

    objective: str
    estimates: list[_SavedEstimate]
    refused: dict[str, dict[str, str]]
    slowdowns: list[_SavedSlowdown]
    handoff_seconds: float
    bookkeeping_seconds: float
    stretch: dict[str, float]
    links: dict[str, _SavedLink]
    group: int | None
    power: dict[str, _SavedPower]


@dataclasses.dataclass(frozen=True)
class _SavedReading:
    boundary: str
    measured_joules: float


@dataclasses.dataclass(frozen=True)
class _SavedAbsence:
    boundary: str
    reason: str


@dataclasses.dataclass(frozen=True)
class _SavedRun:
    """Keys of `measured.json` that are read; there are more."""

    __pydantic_config__ = pydantic.ConfigDict(strict=True)

    name: str
    steps: int
    ended: str
    simulated: bool
    predicted_iteration_seconds: float | None
    measured_iteration_seconds: float | None
    measured_joules: list[_SavedReading]
    joules_unreadable: list[_SavedAbsence]
    episode_return: float | None


_PLAN, _RUN = pydantic.TypeAdapter(_SavedPlan), pydantic.TypeAdapter(_SavedRun)


def read(directory: Path) -> dict[str, Json]:
    """Read the plan, the run if there is one, and the names of pictures.

    Raises:
      ValueError: if there is no plan, or a file is damaged; the message names file and key.
    """
    run = _read(directory, folder.RUN, _RUN) if (directory / folder.RUN).exists() else None
    pictures = sorted(str(each) for each in directory.glob("*.png"))
    plan = read_plan(directory)
    return {"folder": str(directory), "plan": plan, "run": run, "pictures": pictures}


def read_plan(directory: Path) -> dict[str, Json]:
    """Read the plan."""
    return _read(directory, folder.PLAN, _PLAN)


def _read(directory: Path, name: str, adapter: pydantic.TypeAdapter[Any]) -> dict[str, Json]:
    """Return the content of a file as it is, if it has the adapter's keys."""
    found = run_folder.read_json(directory, name)
    try:
        validated(adapter, found, "")
    except ValueError as error:
        raise ValueError(f"{directory / name}: {error}") from error
    return dict(found)


def show(found: dict[str, Json]) -> None:
    """Print plan and run as tables."""
    plan, run = found["plan"], found["run"]
    estimates = plan["estimates"]
    fastest = min(each["predicted_iteration_seconds"] for each in estimates)
    power = plan["power"]
    status = next((each["status"] for each in power.values()), "")  # all have the same
    most = f", of which {SHOWN} are shown" if len(estimates) > SHOWN else ""
    console.print_table(
        f"Predicted, best {plan['objective']} first ({len(estimates)} mappings{most}; of those "
        "that differ in names of like devices one)",
        (
            "mapping",
            "iteration, us",
            "times the fastest",
            "samples/s",
            f"samples/J, {status} watts" if power else "samples/J",
            "stretch",
            "costs",
        ),
        [
            (
                each["name"],
                f"{each['predicted_iteration_seconds'] * 1e6:,.0f}",
                f"{each['predicted_iteration_seconds'] / fastest:.3g}",
                f"{each['predicted_samples_per_second']:,.0f}",
                _number(each["modelled_samples_per_joule"]),
                _number(each["stretch"]),
                each["costs"],
            )
            for each in estimates[:SHOWN]
        ],
    )
    if power:
        console.print_table(
            f"Watts behind the joules, {status}",
            ("device", "source", "idle, W", "busy, W"),
            [
                (name, each["source"], _number(each["idle"]), _number(each["active"]))
                for name, each in power.items()
            ],
            numbers_from=2,
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
        typer.echo(path)


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
