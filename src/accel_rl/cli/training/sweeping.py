"""Sweeps: trainings with every combination of some settings' values, compared by their scores.

Hyper-parameters that are arrays of the agent's or the replay buffer's state are vmapped together
with the seeds: all their combinations train in one compiled program, a group. Each value of any
other setting needs its own program; groups run one after the other. A sweep's folder holds
`sweep.json`, from which it can be resumed, a training's folder for each group, and `results.json`.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_rl.cli import console, folders
from accel_rl.cli.training import configuration, execute, folder, layers, values
from accel_rl.cli.training.assemble import Assembly
from accel_rl.cli.training.configuration import Configuration

SWEEP, RESULTS = "sweep.json", folders.RESULTS
_GROUP = {"folder": str, "settings": dict, "configuration": dict}  # types in `sweep.json`

Make = Callable[[Sequence[str], Mapping[str, Sequence[Any]]], Assembly]
"""make(words, sweep): assemble the training with these override words and swept values."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Combinations that train in one compiled program."""

    name: str  # of its folder, within the sweep's folder
    settings: dict[str, Any]  # swept settings that are static, with this group's values
    configuration: Configuration


def plan(words: Sequence[str], make: Make) -> list[tuple[Group, Assembly]]:
    """Plan the groups of a sweep.

    Args:
      words: `a.b=c`, with comma-separated values for swept settings.
      make: as `Make`.

    Raises:
      ValueError: if no word has several values, or a value is empty or invalid.
    """
    fixed, axes = [], {}
    for word in words:
        name, text = values.assignment(word)
        several = values.split(text)
        if len(several) == 1:
            fixed.append(word)
        elif name in axes:
            raise ValueError(f"{name} is swept twice")
        else:
            axes[name] = several
    if not axes:
        raise ValueError("a sweep needs a setting with several values: section.name=1,2,3")
    # The first combination tells which swept settings are hyper-parameters of the state.
    first = make([*fixed, *(f"{name}={each[0]}" for name, each in axes.items())], {})
    together = {name: each for name, each in axes.items() if name in first.leaves}
    apart = {name: each for name, each in axes.items() if name not in first.leaves}
    mapped = {name: [values.parse(text) for text in each] for name, each in together.items()}
    groups = []
    for number, chosen in enumerate(itertools.product(*apart.values()), start=1):
        own = dict(zip(apart, chosen, strict=True))
        made = make([*fixed, *(f"{name}={text}" for name, text in own.items())], mapped)
        settings = {name: values.parse(text) for name, text in own.items()}
        groups.append((Group(str(number), settings, made.configuration), made))
    return groups


def write(directory: Path, groups: Sequence[Group], command: str) -> None:
    """Write `sweep.json`.

    Raises:
      OSError: if it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    listed = [
        {
            "folder": group.name,
            "settings": group.settings,
            "configuration": configuration.to_mapping(group.configuration),
        }
        for group in groups
    ]
    by = {"command": command, **folders.made_with()}
    folders.write_json(directory / SWEEP, {"groups": listed, layers.WRITTEN_BY: by})


def is_sweep(directory: Path) -> bool:
    """Return whether the folder belongs to a sweep."""
    return (directory / SWEEP).is_file()


def read(directory: Path) -> list[Group]:
    """Read the groups of a sweep's folder.

    Raises:
      ValueError: if `sweep.json` is damaged.
    """
    found = folders.read_json(directory, SWEEP)
    groups = found.get("groups") if isinstance(found, dict) else None
    if not isinstance(groups, list) or not groups or not all(map(_is_group, groups)):
        raise ValueError(
            f"{directory / SWEEP} is damaged: it must have groups, each with {', '.join(_GROUP)}"
        )
    return [
        Group(each["folder"], each["settings"], configuration.from_mapping(each["configuration"]))
        for each in groups
    ]


def _is_group(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), kind) for name, kind in _GROUP.items()
    )


def run(
    directory: Path, groups: Sequence[tuple[Group, Assembly]], command: str, *, bar: bool
) -> dict[str, Any]:
    """Write `sweep.json`, train the groups that are not finished, and compare.

    Returns:
      The content of `results.json`, which is written unless the sweep was interrupted.

    Raises:
      BlockingIOError: if another process trains or sweeps there.
      OSError: if a file cannot be written.
    """
    with folder.writing(directory):
        return _run(directory, groups, command, bar)


def _run(
    directory: Path, groups: Sequence[tuple[Group, Assembly]], command: str, bar: bool
) -> dict[str, Any]:
    write(directory, [group for group, _ in groups], command)
    (directory / RESULTS).unlink(missing_ok=True)
    found = []
    for number, (group, assembly) in enumerate(groups, start=1):
        shown = settings_text(group.settings) or "all in one program"
        console.note(f"group {number} of {len(groups)}: {shown}, {assembly.trainings} trainings")
        each = execute.run(directory / group.name, assembly, command, resume=True, bar=bar)
        if each["reason"] == "interrupted":
            return each
        found.append((group, each))
    results = compare(directory, found)
    results["command"] = command
    folders.write_json(directory / RESULTS, results)
    return results


def compare(directory: Path, found: Sequence[tuple[Group, dict[str, Any]]]) -> dict[str, Any]:
    """Collect all combinations; the best has the highest inter-quartile mean, then mean."""
    combinations = [
        {
            "settings": {**group.settings, **each["settings"]},
            **{name: value for name, value in each.items() if name != "settings"},
            "run": str(directory / group.name),
            "reason": results["reason"],
        }
        for group, results in found
        for each in results["trainings"]
    ]
    scored = [each for each in combinations if each["mean"] is not None]
    best = max(scored, key=lambda each: (each["interquartile_mean"], each["mean"]), default=None)
    common = ("environment", "agent", "steps", "seeds", "episodes")
    return {
        "reason": "done",
        **execute.in_common([{name: each[name] for name in common} for _, each in found]),
        "combinations": [{**each, "best": each is best} for each in combinations],
        "best": None if best is None else best["settings"],
        "training_seconds": round(sum(each["training_seconds"] for _, each in found), 3),
        **folders.made_with(),
    }


def report(directory: Path, results: dict[str, Any]) -> None:
    """Print the table of a sweep, and the settings of the best combination."""
    names = list(results["combinations"][0]["settings"])
    rows = [
        (
            *(values.text(each["settings"][name]) for name in names),
            *(execute.number(each[name]) for name in execute.FIGURES),
            "best" if each["best"] else "",
        )
        for each in results["combinations"]
    ]
    console.print_table(
        execute.heading(results),
        (*names, *execute.FIGURES.values(), ""),
        rows,
        numbers_from=0,
    )
    if results["best"] is not None:
        console.print_line(f"best: {settings_text(results['best'])}")
    console.print_line(f"{results['training_seconds']:.1f} s of training, in {directory}")


def settings_text(settings: Mapping[str, Any]) -> str:
    """Format settings as words of a command line."""
    return " ".join(f"{name}={values.text(value)}" for name, value in settings.items())


def finish(directory: Path, results: dict[str, Any], json: bool) -> None:
    """Print the results of a sweep; exit as `execute.finish` does if it was interrupted."""
    if results["reason"] == "interrupted":
        execute.finish(directory, results, json)
    elif json:
        console.print_json({"run": str(directory), **results})
    else:
        report(directory, results)
