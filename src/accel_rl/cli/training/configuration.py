"""A training run as pure data: all that decides it, in frozen dataclasses.

It is written as JSON with the run, and read from JSON or TOML; no value in it is of a type that
these do not have. The sections `agent` and `replay` hold, besides their own fields, what the agent
and the sampler that they name accept; in files and on the command line these stand beside the
others (`agent.learning_rate`), here they are in `options`.
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
    """Where the agent acts."""

    name: str
    arguments: Options = dataclasses.field(default_factory=dict)  # of the environment's maker
    time_limit: int | None = None  # steps after which episodes are truncated, beside its own limit
    reward_scale: float = 1.0  # factor of the rewards that are learned from, not of those reported
    flatten: bool = False  # observations as vectors
    dtype: str | None = None  # that observations are held in, such as uint8


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """What learns."""

    name: str
    gamma: float = 0.99  # discount factor of an environment step
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """What remembers."""

    sampler: str = "uniform"
    capacity: int | None = None  # items over all environments; None: 10,000, of newest: num_envs
    batch_size: int | None = None  # None: 128, of newest: num_envs
    n_step: int = 1  # rewards in a target
    stratified: bool = True
    weights_over: Literal["batch", "buffer"] = "batch"
    beta: float = 0.4  # exponent of importance weights at the first step
    beta_end: float = 1.0  # and after beta_steps
    beta_steps: float = 500_000  # environment steps
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
    """What an iteration of the program holds; see `train.Schedule`."""

    num_envs: int = 1
    rollout: int = 1
    updates: int = 1
    learning_starts: int = 1_000
    policy_lag: int = 0
    priority_lag: int = 0


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How long, how often, on which seeds."""

    steps: int = 100_000  # of the environment, for each seed
    period: int = 1_000  # steps between rows of metrics
    seeds: int = 1  # independent trainings
    seed: int = 0  # of everything random
    strategy: Literal["auto", "vmap", "chunked", "sharded"] = "auto"  # see `train.over_seeds`
    chunk: int | None = None  # seeds at a time
    log: tuple[Literal["console", "jsonl", "csv", "tensorboard"], ...] = ("jsonl",)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Greedy episodes."""

    episodes: int = 100
    every: int = 10_000  # steps
    max_steps: int = 10_000  # of an episode
    stop_at: float | None = None  # training ends once every seed is worth so much


@dataclasses.dataclass(frozen=True)
class CheckpointsConfig:
    """Saved states, to resume from."""

    every: int | None = None  # environment steps; None: only the best and the last
    keep: int = 2  # of the newest; the best stays besides


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A run."""

    environment: EnvironmentConfig
    agent: AgentConfig
    replay: ReplayConfig
    schedule: ScheduleConfig
    training: TrainingConfig
    evaluation: EvaluationConfig
    checkpoints: CheckpointsConfig
    sweep: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    """Values of hyper-parameters by dotted name. All their combinations are trained at once, each
    with all seeds, the last name's values changing fastest."""

    def combinations(self) -> list[dict[str, float]]:
        """The hyper-parameters of each; one, empty, without a sweep."""
        return [
            dict(zip(self.sweep, each, strict=True))
            for each in itertools.product(*self.sweep.values())
        ]


SWEEP = "sweep"
SECTIONS: dict[str, type] = {
    name: kind for name, kind in typing.get_type_hints(Configuration).items() if name != SWEEP
}


def fields(section: str) -> dict[str, Any]:
    """Names and types of a section's own fields, `options` left out."""
    hints = typing.get_type_hints(SECTIONS[section])
    return {name: kind for name, kind in hints.items() if name != "options"}


def is_open(section: str) -> bool:
    """Whether a section also holds what its agent or sampler accepts."""
    return "options" in typing.get_type_hints(SECTIONS[section])


def settings() -> Iterator[str]:
    """Every dotted name that does not depend on agent, sampler or environment."""
    for section in SECTIONS:
        yield from (f"{section}.{name}" for name in fields(section))


def from_mapping(mapping: Mapping[str, Any]) -> Configuration:
    """A configuration of tables within a table, as files hold it.

    Raises:
      ValueError: if a name is unknown (the message tells the one that was meant) or missing, or a
        value is of the wrong type.
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
    """The tables that `from_mapping` reads."""
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
    """As JSON has it."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value
