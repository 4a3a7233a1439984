"""Mappings to choose from: devices of each role, and equality up to the names of like devices."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Mapping as Table
from typing import Any, cast

from accel_rl.compose.costs import Alike, trial_key
from accel_rl.compose.devices import Device, Executable, JaxDevice
from accel_rl.compose.mapping import EXECUTORS, Mapping
from accel_rl.compose.workload import ROLES, Workload, workload_of
from accel_rl.experiment import Experiment

Watts = tuple[float, float]  # idle and active

Options = dict[str, tuple[Any, ...]]
"""Choices by field of `Mapping`, in the order of its fields; a choice of learners is a tuple."""


class Infeasible(ValueError):
    """Error of a training that no mapping serves.

    Args:
      refused: roles that no device offers, each with devices and the reasons why they refuse it.
    """

    def __init__(self, refused: Table[str, Table[str, str]]) -> None:
        reasons = []
        for role, refusals in refused.items():
            why = ", ".join(f"{device}: {reason}" for device, reason in refusals.items())
            reasons.append(f"no device offers {role} ({why or 'none was asked'})")
        super().__init__("; ".join(reasons) or "no device of JAX takes every role, as fused needs")


def options(
    experiment: Experiment, devices: Table[str, Device], executors: tuple[str, ...] = EXECUTORS
) -> tuple[Options, dict[str, dict[str, str]]]:
    """Return executors and devices to choose from, without redundant like devices.

    Returns:
      The options, and the reasons why others are not offered, by role and device.
    """
    sizes, schedule = workload_of(experiment), experiment.program.schedule
    taken, refused = offers(devices, sizes)
    few = enough(devices, alike(devices, experiment.configuration.compose.power))
    if not (schedule.policy_lag and schedule.priority_lag):
        executors = tuple(each for each in executors if each != "asynchronous")
        refused["executor"] = {"asynchronous": "policy_lag and priority_lag must allow staleness"}
    teams = learners(taken["learner"], devices, sizes.batch_size)
    found: Options = {"executor": executors}
    found |= {role: tuple(each for each in taken[role] if each in few) for role in ROLES}
    found["learner"] = tuple(team for team in teams if len(team) > 1 or team[0] in few)
    return found, refused


def mappings_of(options: Options, devices: Table[str, Device]) -> Iterator[Mapping]:
    """Iterate over all mappings of options; the last role varies fastest."""
    every = itertools.starmap(Mapping, itertools.product(*options.values()))
    return (each for each in every if each.executor != "fused" or in_one_place(each, devices))


def in_one_place(mapping: Mapping, devices: Table[str, Device]) -> bool:
    """Return True if all roles are on one JAX device, as the fused program needs."""
    places = {getattr(devices[name], "jax_device", None) for name in mapping.devices}
    return len(places) == 1 and None not in places


def offers(
    devices: Table[str, Device], workload: Workload
) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
    """Return the devices that accept each role, and the reasons why others refuse it."""
    taken: dict[str, list[str]] = {role: [] for role in ROLES}
    refused: dict[str, dict[str, str]] = {role: {} for role in ROLES}
    for role, (name, device) in itertools.product(ROLES, devices.items()):
        why = device.refuses(role, workload)
        if why is None:
            taken[role].append(name)
        else:
            refused[role][name] = why
    return taken, refused


def learners(
    names: list[str], devices: Table[str, Device], batch_size: int
) -> list[tuple[str, ...]]:
    """Return each device by itself, and all accelerators of a kind if they divide the batch.

    CPU devices are never combined: they would share the host's cores, and XLA's sums over them need
    a free thread for each, or abort the process.
    """
    kinds: dict[str, list[str]] = {}
    for name in names:
        device = devices[name]
        if isinstance(device, JaxDevice) and device.jax_device.platform != "cpu":
            kinds.setdefault(device.kind, []).append(name)
    teams = [tuple(team) for team in kinds.values() if len(team) > 1]
    return [(name,) for name in names] + [t for t in teams if batch_size % len(t) == 0]


def alike(devices: Table[str, Device], power: Table[str, Watts] | None = None) -> Alike:
    """Return which devices are interchangeable: JAX devices of one kind.

    Where joules matter, they must also have the same power.

    Args:
      devices: by name.
      power: watts of some devices, by name; None where only times matter.
    """

    def kind(name: str) -> str:
        found = devices[name].kind
        return found if power is None else f"{found}, {power.get(name, devices[name].power)}"

    return Alike(
        {name: kind(name) for name, each in devices.items() if isinstance(each, JaxDevice)},
        {
            name: str(cast(Executable, each).jax_device)
            for name, each in devices.items()
            if each.status == "executable"
        },
    )


def enough(names: Collection[str], alike: Alike) -> set[str]:
    """Return the devices that suffice for every distinct mapping: of each kind, one per role.

    Devices that have no kind, or keep their names (see `Alike.renamed`), are all included.
    """
    taken = alike.taken(names)
    free: dict[str, list[str]] = {}
    for name in names:
        if name in alike.kinds and alike.places[name] not in taken:
            free.setdefault(alike.kinds[name], []).append(name)
    return set(names).difference(*(each[len(ROLES) :] for each in free.values()))


def distinct(mappings: Iterable[Mapping], alike: Alike) -> list[Mapping]:
    """Return, in order, the first of mappings that are equal up to the names of like devices."""
    found: dict[object, Mapping] = {}
    for each in mappings:
        found.setdefault(trial_key(each, alike), each)
    return list(found.values())
