"""Costs of steps on devices: the tables that the performance model reads."""

import dataclasses
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Table
from typing import Literal, NamedTuple

from accel_rl.arguments import within
from accel_rl.compose.devices.device import DeviceLink
from accel_rl.compose.mapping import Mapping

Source = Literal["measured", "simulated", "modelled"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Time of a step, or of a fused iteration, in seconds."""

    seconds: float  # median over the repeats
    spread: float  # interquartile range of the repeats
    source: Source

    def __post_init__(self) -> None:
        """Raise ValueError if a time is negative or NaN."""
        for name in ("seconds", "spread"):
            within(name, getattr(self, name), "[0, inf]")


class Key(NamedTuple):
    """Table key: one step, or two concurrent ones, with the devices of `Mapping.involved`."""

    steps: tuple[str, ...]
    devices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Alike:
    """Interchangeable devices, so that each kind is measured once."""

    kinds: Table[str, str] = dataclasses.field(default_factory=dict)
    """Device -> kind, for devices that others of their kind can stand for."""
    places: Table[str, str] = dataclasses.field(default_factory=dict)
    """Device -> place, for devices that run here; two devices may share a place."""

    def taken(self, names: Iterable[str]) -> set[str]:
        """Return the places of the named devices that no other device can stand for."""
        return {
            self.places[name] for name in names if name not in self.kinds and name in self.places
        }

    def renamed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Rename like devices in the order of first use, so that equal tuples have equal costs.

        A device keeps its name if it shares its place with one of `names` that nothing can stand
        for: next to `native`, the device whose cores it uses differs from others of its kind.
        """
        taken = self.taken(names)
        new: dict[str, str] = {}
        free: dict[str, list[str]] = {}
        for name, kind in self.kinds.items():
            if self.places.get(name) in taken:
                new[name] = name
            else:
                free.setdefault(kind, []).append(name)
        for name in names:
            if name not in new:
                new[name] = free[self.kinds[name]].pop(0) if name in self.kinds else name
        return tuple(new[name] for name in names)

    def including(self, other: "Alike") -> "Alike":
        """Return the union with `other`, own devices first, so that existing keys stay valid."""
        return Alike({**self.kinds, **other.kinds}, {**self.places, **other.places})


@dataclasses.dataclass(frozen=True)
class Costs:
    """Costs of a workload on a machine: everything that the performance model reads."""

    alike: Alike
    steps: dict[Key, Cost]
    slowdowns: dict[Key, float]
    """Factor on the time of the first step while the second runs, at least 1."""
    fused_iterations: dict[Key, Cost]
    """Cost of an iteration of the fused program, by learner and Replay Manager."""
    handoff: float
    """Seconds from putting an item into a queue until the waiting worker continues."""
    bookkeeping: float
    """Overhead of the executor around each step, in seconds."""
    stretch: dict[str, float] = dataclasses.field(default_factory=dict)
    """Executor -> ratio of measured to predicted iteration time, the median over the profile's
    trials. It covers
    what pairs of steps do not show: three or more concurrent threads, and the interpreter lock."""
    trials: dict[Key, float] = dataclasses.field(default_factory=dict)
    """Ratio of measured to predicted iteration time of each tried mapping, by `trial_key`."""
    links: dict[str, DeviceLink] = dataclasses.field(default_factory=dict)
    """Link from host memory to each executable device, by name. The costs of steps already include
    their transfers."""
    group: int | None = None
    """Updates in one call of `sample` and in one of `learn`, whose costs are of the whole group.
    None: one update a call, followed by a priority update."""

    def key(self, mapping: Mapping, *steps: str) -> Key:
        """Return the key of a step's cost, or of the slowdown of the first step by the second."""
        names = [name for step in steps for name in mapping.involved(step)]
        return Key(steps, self.alike.renamed(names))

    def step(self, mapping: Mapping, step: str) -> Cost:
        """Return a step's cost; raise KeyError if it was neither measured nor modelled."""
        return self.steps[self.key(mapping, step)]

    def slowdown(self, mapping: Mapping, step: str, other: str) -> float:
        """Return the slowdown of a step while another runs; 1 if it was not measured."""
        return self.slowdowns.get(self.key(mapping, step, other), 1.0)

    def stretched(self, mapping: Mapping) -> float:
        """Return the factor on predicted time: of the mapping's trial, else of its executor."""
        own = self.trials.get(trial_key(mapping, self.alike))
        return self.stretch.get(mapping.executor, 1.0) if own is None else own

    def fused(self, mapping: Mapping) -> Cost:
        """Return the cost of a fused iteration; raise KeyError as `step` does."""
        return self.fused_iterations[fused_key(mapping, self.alike)]


def fused_key(mapping: Mapping, alike: Alike) -> Key:
    """Return the key of a fused iteration's cost."""
    return Key(("fused",), alike.renamed((mapping.learner[0], mapping.replay_manager)))


def trial_key(mapping: Mapping, alike: Alike) -> Key:
    """Return the key of a mapping's trial, equal for mappings that differ by like devices."""
    names = (mapping.actor, mapping.replay_manager, mapping.data_storage, *mapping.learner)
    return Key((mapping.executor,), alike.renamed(names))
