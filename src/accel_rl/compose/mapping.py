"""Mappings: devices of the roles, and executor; editable as TOML files."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping as Table
from pathlib import Path

import pydantic

from accel_rl.arguments import one_of
from accel_rl.compose.workload import ROLES
from accel_rl.io.validation import STRICT, validated
from accel_rl.io.values import Json

EXECUTORS = ("fused", "deterministic", "asynchronous")
"""`fused`: the program as one compiled function on one device. `deterministic` and `asynchronous`:
the pipelined executors, see `train.pipelined`."""


@dataclasses.dataclass(frozen=True)
class Mapping:
    """Device names of the roles, and executor.

    Several learners, joined by `+` in files, take equal parts of each batch (PEARL's sub-batches).
    """

    __pydantic_config__ = STRICT

    executor: str
    actor: str
    replay_manager: str
    data_storage: str
    learner: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise ValueError if executor or learner is invalid."""
        one_of("executor", self.executor, EXECUTORS)
        if not self.learner or len(set(self.learner)) != len(self.learner):
            raise ValueError(f"learner must be devices, each once, got {self.learner}")

    @property
    def devices(self) -> tuple[str, ...]:
        """All device names, each once, in the order of roles."""
        return tuple(
            dict.fromkeys((self.actor, self.replay_manager, self.data_storage, *self.learner))
        )

    def involved(self, step: str) -> tuple[str, ...]:
        """Return the devices that a step's time depends on: those that run it, then its peers.

        Peers send or receive the step's data. A device is named once for each part that it takes,
        so that equal tuples mean equal work.
        """
        return {
            "collect": (self.actor, self.learner[0]),
            "insert": (self.replay_manager, self.data_storage, self.actor),
            "sample": (self.replay_manager, self.data_storage, *self.learner),
            "update": (self.replay_manager, self.learner[0]),
            "learn": self.learner,
            "sync": self.learner,
            "write": (self.data_storage, self.actor),
            "gather": (self.data_storage, *self.learner),
        }[step]

    def busy(self, step: str) -> tuple[str, ...]:
        """Return the devices that a step keeps busy."""
        return {
            "collect": (self.actor,),
            "insert": (self.replay_manager, self.data_storage),
            "sample": (self.replay_manager, self.data_storage),
            "update": (self.replay_manager,),
            "learn": self.learner,
            "sync": self.learner,
        }[step]

    def __str__(self) -> str:
        """Return a description in one line."""
        if self.executor == "fused":
            return f"fused on {self.learner[0]}" + (
                "" if self.replay_manager == self.learner[0] else f", {self.replay_manager} replay"
            )
        replay = self.replay_manager
        if self.data_storage != replay:
            replay += f"/{self.data_storage}"
        return f"{self.executor} {self.actor} > {replay} > {'+'.join(self.learner)}"


def to_table(mapping: Mapping) -> dict[str, str]:
    """Return the TOML table of a mapping."""
    roles = {role: getattr(mapping, role) for role in ROLES[:-1]}
    return {"executor": mapping.executor, **roles, "learner": "+".join(mapping.learner)}


def from_table(table: object) -> Mapping:
    """Make a mapping from a table of `to_table`; raise ValueError for any other value."""
    if isinstance(table, dict) and isinstance(table.get("learner"), str):
        table = {**table, "learner": tuple(map(str.strip, table["learner"].split("+")))}
    return validated(pydantic.TypeAdapter(Mapping), table, "mapping")


def read_toml(path: Path) -> dict[str, Json]:
    """Read a TOML file; raise ValueError, with its path, if it is not valid TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no TOML file: {error}") from error


def toml_text(table: Table[str, str]) -> str:
    """Return TOML text of a table of strings, which TOML quotes as JSON does."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
