"""What steps cost on devices: the tables that the model reads, measured or modelled."""

import dataclasses
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Table
from typing import Literal, NamedTuple, get_args

from accel_rl.arguments import instance, one_of, real
from accel_rl.compose.devices.device import Link
from accel_rl.compose.mapping import Mapping

Source = Literal["measured", "simulated", "modelled"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds of a step, or of a fused iteration."""

    seconds: float  # the median
    spread: float  # between the quartiles of the repeats
    source: Source

    def __post_init__(self) -> None:
        """Raises TypeError if a number is none, ValueError if it is out of range, or the source."""
        for name in ("seconds", "spread"):
            if not real(name, getattr(self, name)) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        one_of("source", self.source, get_args(Source))


class Key(NamedTuple):
    """Steps on devices: one, or two that run at once, each with those of `Mapping.involved`."""

    steps: tuple[str, ...]
    devices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Alike:
    """Which devices can stand for which, so that a kind is measured once."""

    kinds: Table[str, str] = dataclasses.field(default_factory=dict)
    """Of each device that others of its kind can stand for."""
    places: Table[str, str] = dataclasses.field(default_factory=dict)
    """Where each device runs, of those that run here; two may run in one place."""

    def __post_init__(self) -> None:
        """Raises TypeError of what is no table."""
        instance("kinds", self.kinds, Table)
        instance("places", self.places, Table)

    def taken(self, names: Iterable[str]) -> set[str]:
        """The places of those among these devices that nothing can stand for."""
        return {
            self.places[name] for name in names if name not in self.kinds and name in self.places
        }

    def renamed(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names with like devices in the order of first use, so that equal tuples cost alike.

        A device in whose place one runs that nothing can stand for keeps its name beside that one:
        next to `native`, the device whose cores it uses is not like the others.
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
        """Both, these first: what is known is named by them."""
        return Alike({**self.kinds, **other.kinds}, {**self.places, **other.places})


@dataclasses.dataclass(frozen=True)
class Costs:
    """All that the model knows of a workload on a machine."""

    alike: Alike
    steps: dict[Key, Cost]
    slowdowns: dict[Key, float]
    """How many times longer the first step takes while the second runs, at least 1."""
    fused_iterations: dict[Key, Cost]
    """An iteration of the fused program, by learner and Replay Manager."""
    handoff: float
    """Seconds from an item's being put to the waiting worker's going on."""
    bookkeeping: float
    """Seconds that the executor spends around each step."""
    stretch: dict[str, float] = dataclasses.field(default_factory=dict)
    """By executor: how many times longer an iteration took in trials than in simulated time. What
    pairs of steps do not show: three threads and more at once, and their interpreter's lock."""
    trials: dict[Key, float] = dataclasses.field(default_factory=dict)
    """The same of each mapping that was tried, by `trial_key`; the stretch is their median."""
    links: dict[str, Link] = dataclasses.field(default_factory=dict)
    """From the host's memory to each device that runs here, by name; transfers that steps make are
    in their costs already."""
    group: int | None = None
    """Updates that are sampled in one call and learned from in one, whose costs `sample` and
    `learn` have; None: each by itself, and then its priorities are updated."""

    def key(self, mapping: Mapping, *steps: str) -> Key:
        """Where a step's cost stands, or with two the slowdown of the first by the second."""
        names = [name for step in steps for name in mapping.involved(step)]
        return Key(steps, self.alike.renamed(names))

    def step(self, mapping: Mapping, step: str) -> Cost:
        """A step's cost in a mapping; raises KeyError if it was neither measured nor modelled."""
        return self.steps[self.key(mapping, step)]

    def slowdown(self, mapping: Mapping, step: str, other: str) -> float:
        """How many times longer a step takes while another runs; 1 where nothing was measured."""
        return self.slowdowns.get(self.key(mapping, step, other), 1.0)

    def stretched(self, mapping: Mapping) -> float:
        """What the simulated time of a mapping is multiplied by: its own trial's, if there was."""
        own = self.trials.get(trial_key(mapping, self.alike))
        return self.stretch.get(mapping.executor, 1.0) if own is None else own

    def least_stretched(self, executor: str) -> float:
        """The least that any mapping's is multiplied by."""
        tried = [each for key, each in self.trials.items() if key.steps == (executor,)]
        return min([self.stretch.get(executor, 1.0), *tried])

    def fused(self, mapping: Mapping) -> Cost:
        """An iteration where everything runs as one program; raises KeyError as `step` does."""
        return self.fused_iterations[fused_key(mapping, self.alike)]


def fused_key(mapping: Mapping, alike: Alike) -> Key:
    """Where the cost of a fused iteration stands."""
    return Key(("fused",), alike.renamed((mapping.learner[0], mapping.replay_manager)))


def trial_key(mapping: Mapping, alike: Alike) -> Key:
    """Where a trial of a mapping stands; the same for like devices under other names."""
    names = (mapping.actor, mapping.replay_manager, mapping.data_storage, *mapping.learner)
    return Key((mapping.executor,), alike.renamed(names))
