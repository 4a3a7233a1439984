"""What steps cost on devices: the tables that the model reads, measured or modelled."""

import dataclasses
from collections.abc import Mapping as Table
from collections.abc import Sequence
from typing import Literal, NamedTuple

from accel_rl.compose.mapping import Mapping

Source = Literal["measured", "simulated", "modelled"]


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds of a step, or of a fused iteration."""

    seconds: float  # the median
    spread: float  # between the quartiles of the repeats
    source: Source


class Key(NamedTuple):
    """Steps on devices: one, or two that run at once, each with those of `Mapping.involved`."""

    steps: tuple[str, ...]
    devices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Costs:
    """All that the model knows of a workload on a machine."""

    alike: Table[str, str]
    """The kind of each device that others of its kind can stand for."""
    steps: dict[Key, Cost]
    slowdowns: dict[Key, float]
    """How many times longer the first step takes while the second runs, at least 1."""
    whole: dict[Key, Cost]
    """An iteration of the fused program, by learner and Replay Manager."""
    handoff: float
    """Seconds from an item's being put to the waiting worker's going on."""
    bookkeeping: float
    """Seconds that the executor spends around each step."""
    stretch: dict[str, float] = dataclasses.field(default_factory=dict)
    """By executor: how many times longer an iteration took in trials than in simulated time. What
    pairs of steps do not show: three threads and more at once, and their interpreter's lock."""
    trials: dict[Key, float] = dataclasses.field(default_factory=dict)
    """The same of single mappings, by `trial_key`; the stretch is the median over a plan's."""

    def key(self, mapping: Mapping, *steps: str) -> Key:
        """Where a step's cost stands, or with two the slowdown of the first by the second."""
        names = [name for step in steps for name in mapping.involved(step)]
        return Key(steps, renamed(names, self.alike))

    def step(self, mapping: Mapping, step: str) -> Cost:
        """A step's cost in a mapping; raises KeyError if it was neither measured nor modelled."""
        return self.steps[self.key(mapping, step)]

    def slowdown(self, mapping: Mapping, step: str, other: str) -> float:
        """How many times longer a step takes while another runs; 1 where nothing was measured."""
        return self.slowdowns.get(self.key(mapping, step, other), 1.0)

    def fused(self, mapping: Mapping) -> Cost:
        """An iteration where everything runs as one program; raises KeyError as `step` does."""
        return self.whole[whole_key(mapping, self.alike)]


def whole_key(mapping: Mapping, alike: Table[str, str]) -> Key:
    """Where the cost of a fused iteration stands."""
    return Key(("whole",), renamed((mapping.learner[0], mapping.replay_manager), alike))


def trial_key(mapping: Mapping, alike: Table[str, str]) -> Key:
    """Where a trial of a mapping stands; the same for like devices under other names."""
    names = (mapping.actor, mapping.replay_manager, mapping.data_storage, *mapping.learner)
    return Key((mapping.executor,), renamed(names, alike))


def renamed(names: Sequence[str], alike: Table[str, str]) -> tuple[str, ...]:
    """Device names with like devices in the order of first use, so that equal tuples cost alike.

    Where a device is among them that nothing can stand for, they stay as they are: it may share
    its place with one of the others.
    """
    if not set(names) <= set(alike):
        return tuple(names)
    free: dict[str, list[str]] = {}
    for name, kind in alike.items():
        free.setdefault(kind, []).append(name)
    new: dict[str, str] = {}
    for name in names:
        if name not in new:
            new[name] = free[alike[name]].pop(0)
    return tuple(new[name] for name in names)
