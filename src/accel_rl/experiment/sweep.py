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
from typing import Annotated

import pydantic

from accel_rl.experiment import configuration, folder, training, words
from accel_rl.experiment.assembly import Experiment
from accel_rl.experiment.configuration import Configuration
from accel_rl.io.run_folder import (
    RESULTS,
    continue_run,
    kind_of,
    made_with,
    read_json,
    write_json,
)
from accel_rl.io.validation import validated
from accel_rl.io.values import Json

SWEEP = "sweep.json"
FILES = {
    SWEEP: "groups of combinations, each with its settings and configuration",
    RESULTS: "scores of all combinations; written last",
}

Make = Callable[[Sequence[str], Mapping[str, Sequence[object]]], Experiment]
"""make(words, sweep): assemble the training with these override words and swept values."""


@dataclasses.dataclass(frozen=True)
class SweepGroup:
    """Combinations that train in one compiled program."""

    name: str  # of its folder, within the sweep's folder
    settings: dict[str, Json]  # swept settings that are static, with this group's values
    configuration: Configuration


@dataclasses.dataclass(frozen=True)
class _SavedGroup:
    folder: str
    settings: configuration.Options
    configuration: configuration.Options


@dataclasses.dataclass(frozen=True)
class _SavedSweep:
    groups: Annotated[tuple[_SavedGroup, ...], pydantic.Field(min_length=1)]


_SAVED = pydantic.TypeAdapter(_SavedSweep)


def plan(settings: Sequence[str], make: Make) -> list[tuple[SweepGroup, Experiment]]:
    """Plan the groups of a sweep.

    Args:
      settings: words `a.b=c`, with comma-separated values for swept settings.
      make: as `Make`.
    """
    fixed, axes = [], {}
    for word in settings:
        name, text = words.assignment(word)
        several = words.split(text)
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
    mapped = {name: [words.parse(text) for text in each] for name, each in together.items()}
    groups = []
    for number, chosen in enumerate(itertools.product(*apart.values()), start=1):
        own = dict(zip(apart, chosen, strict=True))
        made = make([*fixed, *(f"{name}={text}" for name, text in own.items())], mapped)
        chosen_settings = {name: words.parse(text) for name, text in own.items()}
        groups.append((SweepGroup(str(number), chosen_settings, made.configuration), made))
    return groups


def write(directory: Path, groups: Sequence[SweepGroup], command: str) -> None:
    """Write the manifest and `sweep.json`."""
    if kind_of(directory) == "sweep":
        continue_run(directory, command)
    else:
        folders = {f"{group.name}/": "training of a group of combinations" for group in groups}
        files = {**FILES, **folders}
        folder.begin(directory, "sweep", command, groups[0].configuration, files)
    listed = [
        {
            "folder": group.name,
            "settings": group.settings,
            "configuration": configuration.to_mapping(group.configuration),
        }
        for group in groups
    ]
    write_json(directory / SWEEP, {"groups": listed})


def read(directory: Path) -> list[SweepGroup]:
    """Read the groups of a sweep's folder."""
    try:
        saved = validated(_SAVED, read_json(directory, SWEEP), "")
    except ValueError as error:
        raise ValueError(f"{directory / SWEEP} is damaged: {error}") from error
    return [
        SweepGroup(each.folder, dict(each.settings), configuration.from_mapping(each.configuration))
        for each in saved.groups
    ]


def run(
    directory: Path,
    groups: Sequence[tuple[SweepGroup, Experiment]],
    command: str,
    *,
    bar: bool,
    on_group: Callable[[str], object],
) -> dict[str, Json]:
    """Write `sweep.json`, train the groups that are not finished, and compare.

    Args:
      directory: the folder; created if absent.
      groups: from `plan`.
      command: the command line, for records.
      bar: show a progress bar on stderr for each group.
      on_group: called with a description of each group before it trains.

    Returns:
      The content of `results.json`, which is written unless the sweep was interrupted.

    Raises:
      BlockingIOError: if another process trains or sweeps there.
      OSError: if a file cannot be written.
    """
    with folder.writing(directory):
        write(directory, [group for group, _ in groups], command)
        (directory / RESULTS).unlink(missing_ok=True)
        found = []
        for number, (group, experiment) in enumerate(groups, start=1):
            shown = words.assignments(group.settings) or "all in one program"
            on_group(f"group {number} of {len(groups)}: {shown}, {experiment.trainings} trainings")
            _, each = training.run(
                directory / group.name, experiment, command, resume=True, bar=bar
            )
            if each["reason"] == "interrupted":
                return each
            found.append((group, each))
        results = compare(directory, found)
        results["command"] = command
        write_json(directory / RESULTS, results)
        return results


def compare(
    directory: Path, found: Sequence[tuple[SweepGroup, dict[str, Json]]]
) -> dict[str, Json]:
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
        **training.in_common([{name: each[name] for name in common} for _, each in found]),
        "combinations": [{**each, "best": each is best} for each in combinations],
        "best": None if best is None else best["settings"],
        "training_seconds": round(sum(each["training_seconds"] for _, each in found), 3),
        **made_with(),
    }
