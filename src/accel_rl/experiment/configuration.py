"""Configuration of an experiment as plain data, in frozen dataclasses.

It is written as JSON with the run, and read from JSON or TOML; all values have types of these
formats. The sections `agent` and `replay` also hold the settings of the agent and the sampler that
they name. In files and on the command line these stand beside the section's own fields
(`agent.learning_rate`); here they are in `options`.
"""

import dataclasses
import itertools
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import pydantic

from accel_rl.experiment import words
from accel_rl.io.validation import STRICT, finite, validated, whole
from accel_rl.io.values import Json

Options = Mapping[str, Json]


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """Environment and its wrappers."""

    __pydantic_config__ = STRICT

    name: str
    """as `accel-rl envs --gymnax` lists them, or `MODULE:NAME`"""
    arguments: Annotated[Options, pydantic.AfterValidator(finite)] = dataclasses.field(
        default_factory=dict
    )
    """arguments of the environment's constructor: `environment.arguments.map_name=8x8`"""
    time_limit: int | None = None
    """steps after which episodes are truncated, in addition to the environment's own limit"""
    reward_scale: float = 1.0
    """positive factor of the rewards that the agent learns from; no returns are scaled"""
    flatten: bool = False
    """flatten observations to vectors"""
    dtype: str | None = None
    """dtype of stored observations, such as `uint8` for MinAtar"""
    host: bool | None = None
    """step on the host, by Gymnasium; none: where no compiled environment has the name"""
    backend: Literal["sync", "threads", "processes"] = "sync"
    """how host environments step: in sequence, in threads or in processes"""
    workers: int | None = None
    """threads or processes of host environments; none: one for each processor"""


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """Agent and its settings."""

    __pydantic_config__ = STRICT

    name: str
    """named by the command; `MODULE:NAME` is a function of your own"""
    gamma: float = 0.99
    """discount factor per environment step"""
    normalise: bool = False
    """read observations with running mean 0 and variance 1; see `normalise_observations`"""
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Replay buffer and its sampler."""

    __pydantic_config__ = STRICT

    sampler: str = "uniform"
    """`uniform`, `prioritised` (`per`), `rank-based`, `amper-fr`, `amper-k`; `newest`: online"""
    capacity: int | None = None
    """transitions over all environments; none: 10,000, for `newest` `num_envs`"""
    batch_size: int | None = None
    """transitions of an update; none: 128, for `newest` `num_envs`"""
    n_step: int = 1
    """rewards in a target"""
    stratified: bool = True
    """see [replay](replay.md)"""
    weights_over: Literal["batch", "buffer"] = "batch"
    """`batch` or `buffer`: where the largest importance-sampling weight is taken"""
    beta: float = 0.4
    """initial exponent of importance-sampling weights"""
    beta_end: float = 1.0
    """exponent after `beta_steps`"""
    beta_steps: float = 500_000
    """environment steps"""
    options: Options = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ScheduleConfig:
    """Schedule of an iteration; see `train.Schedule`."""

    __pydantic_config__ = STRICT

    num_envs: int = 1
    """environments of a seed that step together"""
    rollout: int = 1
    """steps of each environment in an iteration"""
    updates: int = 1
    """updates in an iteration"""
    learning_starts: int = 1_000
    """environment steps before the first update"""
    policy_lag: int = 0
    """iterations by which the acting policy is older than the newest"""
    priority_lag: int = 0
    """priority updates that a sample need not have seen"""


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Length, logging and seeds of a training."""

    __pydantic_config__ = STRICT

    steps: int = 100_000
    """environment steps of each seed"""
    period: int = 1_000
    """environment steps between rows of metrics"""
    seeds: int = 1
    """independent trainings at once"""
    seed: int = 0
    """seed of all random numbers"""
    strategy: Literal["auto", "vmap", "batched", "sharded"] = "auto"
    """`auto`, `vmap`, `batched`, `sharded`: how seeds share the devices"""
    executor: Literal["fused", "deterministic", "asynchronous"] = "fused"
    """`fused`; of a single seed `deterministic`, `asynchronous`: see [executors](pipelined.md)"""
    seed_batch: int | None = None
    """seeds at a time on a device; with none, a CPU takes 8 to 16 where that divides them"""
    log: tuple[Literal["console", "jsonl", "csv", "tensorboard", "wandb"], ...] = ("jsonl",)
    """a list of `console`, `jsonl`, `csv`, `tensorboard`, `wandb`"""


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation by greedy episodes."""

    __pydantic_config__ = STRICT

    episodes: int = 100
    """greedy episodes of each seed"""
    every: int = 10_000
    """environment steps between evaluations; the last step is always evaluated"""
    max_steps: int = 10_000
    """steps after which an evaluation episode ends"""
    stop_at: float | None = None
    """stop once every seed's evaluation return reaches this value"""
    stop_excess: float | None = None
    """stop once a seed's values exceed what rewards and gamma allow so many times, such as 2"""


@dataclasses.dataclass(frozen=True)
class CheckpointsConfig:
    """Checkpoints, from which a training can be resumed."""

    __pydantic_config__ = STRICT

    every: int | None = None
    """environment steps between checkpoints; none: the best and the last, of Ape-X twenty"""
    keep: int = 2
    """newest checkpoints to keep, in addition to the best"""


def _ordered(power: Mapping[str, tuple[float, float]]) -> Mapping[str, tuple[float, float]]:
    """Raise ValueError unless each device's idle watts are at most its active watts."""
    for name, (idle, active) in power.items():
        if not 0 <= idle <= active:
            raise ValueError(
                f"must give idle watts, then active watts, of {name}: [{idle}, {active}]"
            )
    return power


@dataclasses.dataclass(frozen=True)
class ComposeConfig:
    """Devices and objective of `accel-rl compose`; no other command reads them."""

    __pydantic_config__ = STRICT

    devices: tuple[str, ...] = ()
    """names, see [devices](compose.md); none: all executable devices of this machine"""
    objective: Literal["throughput", "efficiency", "weighted"] = "throughput"
    """`throughput`: samples per second; `efficiency`: per joule; `weighted`: geometric mean"""
    weight: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.5
    """weight of efficiency in the weighted objective"""
    power: Annotated[
        Mapping[str, tuple[pydantic.FiniteFloat, pydantic.FiniteFloat]],
        pydantic.AfterValidator(_ordered),
    ] = dataclasses.field(default_factory=dict)
    """idle and active watts of devices: `compose.power.native=[3,9]`; none: of data sheets"""


@dataclasses.dataclass(frozen=True)
class ApexConfig:
    """Actors of `accel-rl apex`; no other command reads them."""

    __pydantic_config__ = STRICT

    num_actors: Annotated[int, pydantic.Field(ge=1)] = 2
    """actor processes, which share the environments of `schedule.num_envs`"""
    epsilon: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.4
    """epsilon of the environment that explores most"""
    epsilon_spread: Annotated[pydantic.FiniteFloat, pydantic.Field(ge=0)] = 7.0
    """exponent by which epsilons fall over environments; see `agents.ape_x_exploration`"""
    run: Annotated[str, pydantic.Field(min_length=1)] = "apex"
    """name of the training on the server, and of its table"""


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Configuration of an experiment."""

    __pydantic_config__ = STRICT

    environment: EnvironmentConfig
    agent: AgentConfig
    replay: ReplayConfig
    schedule: ScheduleConfig
    training: TrainingConfig
    evaluation: EvaluationConfig
    checkpoints: CheckpointsConfig
    compose: ComposeConfig
    apex: ApexConfig
    sweep: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    """Swept values of hyper-parameters, by dotted name. All combinations train at once, each with
    all seeds; the values of the last name change fastest."""

    def __post_init__(self) -> None:
        for name, values in self.sweep.items():
            if not values:
                raise ValueError(f"sweep.{name} must have at least one value")

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
ADAPTER = pydantic.TypeAdapter(Configuration)


def fields(section: str) -> list[str]:
    """Return the names of a section's own fields, without `options`."""
    return [each.name for each in dataclasses.fields(SECTIONS[section]) if each.name != "options"]


def settings() -> Iterator[str]:
    """Yield every dotted name that does not depend on agent, sampler or environment."""
    for section in SECTIONS:
        yield from (f"{section}.{name}" for name in fields(section))


def from_mapping(mapping: Mapping[str, Json]) -> Configuration:
    """Build a configuration from nested tables, the format of files."""
    for name in mapping:
        words.check_known(name, (*SECTIONS, SWEEP), "section")
    tables = {name: _nested(name, mapping.get(name, {})) for name in SECTIONS}
    return validated(ADAPTER, {**tables, SWEEP: mapping.get(SWEEP, {})}, "")


def to_mapping(configuration: Configuration) -> dict[str, dict[str, Json]]:
    """Convert a configuration to the tables that `from_mapping` reads."""
    tables: dict[str, dict[str, Json]] = ADAPTER.dump_python(configuration, mode="json")
    for table in tables.values():
        table.update(table.pop("options", {}))
    if not tables[SWEEP]:
        del tables[SWEEP]
    for name in ("compose", "apex"):  # most experiments have neither
        if getattr(configuration, name) == SECTIONS[name]():
            del tables[name]
    return tables


def _nested(section: str, table: object) -> dict[str, Json]:
    """Return a section's table with the settings of its agent or sampler in `options`."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{section} must be a table of settings, got {table!r}")
    own = fields(section)
    given = {name: whole(table[name]) for name in table if name in own}
    options = {name: table[name] for name in table if name not in own}
    if section in ("agent", "replay"):
        return {**given, "options": options}
    for name in options:
        words.check_known(f"{section}.{name}", settings())
    return given
