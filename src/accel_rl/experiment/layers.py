"""Layers of settings, lowest precedence first, and their merge.

1. the defaults of `configuration` and of the library;
2. `presets.toml`: for the agent, for the agent in the environment, then for the command;
3. the file of `--config`: TOML, or the `config.json` of another run;
4. options of the command, such as `--steps`;
5. words like `agent.learning_rate=1e-3`.

Counts of environment steps may be given as a share of `training.steps`: `"50%"`.
"""

import functools
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import pydantic

from accel_rl.arguments import one_of
from accel_rl.experiment import catalogue, configuration, words
from accel_rl.io import validation
from accel_rl.io.values import Json
from accel_rl.replay.make import OTHER_NAMES

Tables = dict[str, dict[str, Json]]
Command = Literal["apex", "compose"]
_TABLES = pydantic.TypeAdapter(Tables)

SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")
_NAMES = {"agent": "name", "replay": "sampler", "environment": "name"}


def resolve(
    agent: str | None,
    environment: str | None,
    file: Path | None,
    options: Mapping[str, Json],
    overrides: Sequence[str],
    command: Command | None = None,
) -> Tables:
    """Merge the settings of all layers, except library defaults.

    Args:
      agent: the agent's name; the file must not name another one. None: the file's.
      environment: its name; the file's if None.
      file: of `--config`.
      options: command options that were given, by dotted name.
      overrides: words of the form `a.b=c`.
      command: for its presets over those of the agent.
    """
    upper: list[Tables] = [{} if file is None else read(file)]
    upper[0] = _spelt(upper[0])
    of = upper[0].get("agent", {}).get("name", agent)
    agent = of if agent is None else agent
    if agent is None:
        raise ValueError("no agent is named: give agent, or agent.name in the file")
    if of != agent:
        raise ValueError(f"{file} is of agent {of}, not of {agent}")
    named = {} if environment is None else {"environment.name": environment}
    given = [words.assignment(word) for word in overrides]
    if "agent.name" in (*options, *(name for name, _ in given)):
        raise ValueError("the agent is named by the command: agent.name cannot be set")
    upper += [
        _spelt(tables({"agent.name": agent, **named, **options})),
        _spelt(tables({name: words.parse(text) for name, text in given}, agent)),
    ]
    over = functools.reduce(merge, upper)
    name = over.get("environment", {}).get("name")
    if name is None:
        raise ValueError("no environment is named: give ENV, or environment.name in the file")
    if command is not None:
        one_of("command", command, get_args(Command))
    below = [*preset(agent, name), *(preset(command, name) if command else [])]
    found = functools.reduce(merge, [*below, over])
    swept = upper[0].get(configuration.SWEEP)
    return shares({**found, configuration.SWEEP: swept} if swept else found)


def read(path: Path) -> Tables:
    """Read the tables of a TOML or JSON file."""
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ValueError(f"{path} is not a {kind} file: {error}") from error
    checked = validation.validated(_TABLES, found, str(path))
    for section in checked:
        known = (*configuration.SECTIONS, configuration.SWEEP)
        words.check_known(section, known, f"section of {path}")
    return checked


def preset(agent: str, environment: str) -> list[Tables]:
    """Return the preset layers of an agent or a command in an environment, lowest first.

    A preset may cover a family of environments: `MinAtar` applies to every name that has it after
    the last hyphen, such as `Breakout-MinAtar`.
    """
    found = presets().get(agent, {})
    of = found.get("environments", {})
    family = environment.rpartition("-")[2]
    below = preset(found["like"], environment) if "like" in found else []
    own = {name: table for name, table in found.items() if name in configuration.SECTIONS}
    return [*below, own, of.get(family, {}), of.get(environment, {})]


def presets_in(complete: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    """Return the settings of complete tables that equal the presets', by dotted name."""
    layers = preset(complete["agent"]["name"], complete["environment"]["name"])
    own = functools.reduce(merge, layers)
    # Shares refer to the run's steps, but `steps` itself is compared with the preset's.
    numbers = shares(merge(own, {"training": {"steps": complete["training"]["steps"]}}))
    numbers["training"]["steps"] = own.get("training", {}).get("steps")
    return {
        f"{section}.{name}": numbers[section][name]
        for section, table in own.items()
        for name in table
        if complete[section].get(name) == numbers[section][name]
    }


@functools.cache
def presets() -> dict[str, Json]:
    """Load `presets.toml`."""
    file = resources.files("accel_rl.experiment") / "presets.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def tables(flat: Mapping[str, Json], agent: str = "") -> Tables:
    """Convert dotted names to tables.

    Args:
      flat: values by dotted name.
      agent: its settings are suggested where a name is unknown.
    """
    found: Tables = {}
    for name, value in flat.items():
        section, *path = name.split(".")
        if section not in configuration.SECTIONS or not path:
            words.check_known(name, [*configuration.settings(), *catalogue.accepted(agent)])
        table = found.setdefault(section, {})
        for part in path[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ValueError(f"{name} is set below {part}, which is set itself")
        table[path[-1]] = value
    return found


def merge(lower: Mapping[str, Json], upper: Mapping[str, Json]) -> Tables:
    """Merge two layers; the upper one takes precedence.

    Where the upper layer names another agent, sampler or environment, the lower layer's settings
    of that section are dropped, except those that all agents, samplers or environments have.
    """
    merged: Tables = {}
    for section in configuration.SECTIONS:
        below, above = dict(lower.get(section, {})), upper.get(section, {})
        name = _NAMES.get(section)
        if name in above and name in below and above[name] != below[name]:
            common = set(configuration.fields(section)) - {"arguments"}
            below = {each: value for each, value in below.items() if each in common}
        for each, value in above.items():
            both = isinstance(value, dict) and isinstance(below.get(each), dict)
            below[each] = {**below[each], **value} if both else value
        if below:
            merged[section] = below
    return merged


def shares(merged: Tables) -> Tables:
    """Replace shares of `training.steps` by numbers of steps, at least 1."""
    default = configuration.TrainingConfig().steps
    steps = merged.get("training", {}).get("steps", default)

    def number(value: object) -> Any:
        if isinstance(value, list):  # values of a sweep
            return [number(each) for each in value]
        match = SHARE.fullmatch(value) if isinstance(value, str) else None
        if not match:
            return value
        return max(1, round(float(match[1]) / 100 * validation.integer(steps, "training.steps")))

    return {
        section: {name: number(value) for name, value in table.items()}
        for section, table in merged.items()
    }


def _spelt(layer: Tables) -> Tables:
    """Replace names of agents and samplers by the library's spelling."""

    def name(value: Any) -> Any:
        spelt = value.replace("-", "_") if isinstance(value, str) else value
        return OTHER_NAMES.get(spelt, spelt)

    spelt = {section: dict(table) for section, table in layer.items()}
    for section, field in (("agent", "name"), ("replay", "sampler")):
        if field in spelt.get(section, {}):
            spelt[section][field] = name(spelt[section][field])
    return spelt
