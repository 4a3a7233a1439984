"""Configuration of a training run as plain data, in frozen dataclasses.

It is written as JSON with the run, and read from JSON or TOML; all values have types of these
formats. The sections `agent` and `replay` also hold the settings of the agent and the sampler that
they name. In files and on the command line these stand beside the section's own fields
(`agent.learning_rate`); here they are in `options`.
"""

import dataclasses
import itertools
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from accel_rl.cli.training import values

Options = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """Environment and its wrappers."""

    name: str
    arguments: Options = dataclasses.field(default_factory=dict)  # of the environment's constructor
    time_limit: int | None = None  # truncate episodes after so many steps, beside its own limit
    reward_scale: float = 1.0  # factor of rewards in training; reported returns are unscaled
    flatten: bool = False  # observations to vectors
    dtype: str | None = None  # of stored observations, such as uint8


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """Agent and its settings."""

    name: str
    gamma: float = 0.99  # discount factor per environment step
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Replay buffer and its sampler."""

    sampler: str = "uniform"
    capacity: int | None = None  # items over all environments; None: 10,000, for newest: num_envs
    batch_size: int | None = None  # None: 128, for newest: num_envs
    n_step: int = 1  # of n-step targets
    stratified: bool = True
    weights_over: Literal["batch", "buffer"] = "batch"
    beta: float = 0.4  # initial exponent of importance-sampling weights
    beta_end: float = 1.0  # exponent after beta_steps
    beta_steps: float = 500_000  # environment steps
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
    """Schedule of an iteration; see `train.Schedule`."""

    num_envs: int = 1
    rollout: int = 1
    updates: int = 1
    learning_starts: int = 1_000
    policy_lag: int = 0
    priority_lag: int = 0


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Length, logging and seeds of a training."""

    steps: int = 100_000  # environment steps for each seed
    period: int = 1_000  # environment steps between rows of metrics
    seeds: int = 1  # independent trainings
    seed: int = 0  # of all random numbers
    strategy: Literal["auto", "vmap", "chunked", "sharded"] = "auto"  # see `train.over_seeds`
    chunk: int | None = None  # size of a seed batch on a device
    log: tuple[Literal["console", "jsonl", "csv", "tensorboard"], ...] = ("jsonl",)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation by greedy episodes."""

    episodes: int = 100
    every: int = 10_000  # environment steps
    max_steps: int = 10_000  # of an episode
    stop_at: float | None = None  # stop once every seed's evaluation return reaches it


@dataclasses.dataclass(frozen=True)
class CheckpointsConfig:
    """Checkpoints, from which a training can be resumed."""

    every: int | None = None  # environment steps; None: only the best and the last
    keep: int = 2  # newest checkpoints to keep, in addition to the best


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Configuration of a run."""

    environment: EnvironmentConfig
    agent: AgentConfig
    replay: ReplayConfig
    schedule: ScheduleConfig
    training: TrainingConfig
    evaluation: EvaluationConfig
    checkpoints: CheckpointsConfig
    sweep: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    """Swept values of hyper-parameters, by dotted name. All combinations train at once, each with
    all seeds; the values of the last name change fastest."""

    def combinations(self) -> list[dict[str, float]]:
        """Return the hyper-parameters of each combination; one empty dict without a sweep."""
        return [
            dict(zip(self.sweep, each, strict=True))
            for each in itertools.product(*self.sweep.values())
        ]


SWEEP = "sweep"
SECTIONS: dict[str, type] = {
    name: kind for name, kind in typing.get_type_hints(Configuration).items() if name != SWEEP
}


def fields(section: str) -> dict[str, Any]:
    """Return names and types of a section's own fields, without `options`."""
    hints = typing.get_type_hints(SECTIONS[section])
    return {name: kind for name, kind in hints.items() if name != "options"}


def is_open(section: str) -> bool:
    """Return whether a section also holds settings of its agent or sampler."""
    return "options" in typing.get_type_hints(SECTIONS[section])


def settings() -> Iterator[str]:
    """Yield every dotted name that does not depend on agent, sampler or environment."""
    for section in SECTIONS:
        yield from (f"{section}.{name}" for name in fields(section))


def from_mapping(mapping: Mapping[str, Any]) -> Configuration:
    """Build a configuration from nested tables, the format of files.

    Raises:
      ValueError: if a name is unknown (the message suggests a known one) or missing, or a value is
        of the wrong type.
    """
    for name in mapping:
        if name not in (*SECTIONS, SWEEP):
            raise values.unknown(name, SECTIONS, "section")
    sections = {name: _section(name, mapping.get(name, {})) for name in SECTIONS}
    sweep = values.conform(Options, mapping.get(SWEEP, {}), SWEEP)
    lists = {
        name: values.conform(tuple[float, ...], each, f"{SWEEP}.{name}")
        for name, each in sweep.items()
    }
    return Configuration(**sections, sweep=lists)


def to_mapping(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """Convert a configuration to the tables that `from_mapping` reads."""
    tables = {}
    for section in SECTIONS:
        table = dict(vars(getattr(configuration, section)))
        options = table.pop("options", {})
        tables[section] = {name: _plain(value) for name, value in {**table, **options}.items()}
    if configuration.sweep:
        tables[SWEEP] = {name: list(each) for name, each in configuration.sweep.items()}
    return tables


def _section(section: str, table: Any) -> Any:
    if not isinstance(table, Mapping):
        raise ValueError(f"{section} must be a table of settings, got {table!r}")
    known, given, options = fields(section), {}, {}
    for name, value in table.items():
        if name in known:
            given[name] = values.conform(known[name], value, f"{section}.{name}")
        elif is_open(section):
            options[name] = value
        else:
            raise values.unknown(f"{section}.{name}", settings())
    if is_open(section):
        given["options"] = options
    for field in dataclasses.fields(SECTIONS[section]):
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and field.name not in given:
            raise ValueError(f"{section}.{field.name} is missing")
    return SECTIONS[section](**given)


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value
