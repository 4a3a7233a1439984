"""The mappings that there are, and which of them are the same up to the names of like devices."""

import itertools
from collections.abc import Collection, Iterable
from collections.abc import Mapping as Table
from typing import cast

from accel_rl.compose.costs import Alike, trial_key
from accel_rl.compose.devices import Device, Executable, JaxDevice
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.workload import ROLES, Workload

Watts = tuple[float, float]  # idle and active


def offers(
    devices: Table[str, Device], workload: Workload
) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
    """For each role the devices that take it, and why the others do not."""
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
    """Each by itself, and all accelerators of a kind together if they divide the batch.

    Devices of one host are not put together: they would share its cores, and XLA's sums over them
    need a free thread for each, without which they stop the process.
    """
    kinds: dict[str, list[str]] = {}
    for name in names:
        device = devices[name]
        if isinstance(device, JaxDevice) and device.jax_device.platform != "cpu":
            kinds.setdefault(device.kind, []).append(name)
    teams = [tuple(team) for team in kinds.values() if len(team) > 1]
    return [(name,) for name in names] + [t for t in teams if batch_size % len(t) == 0]


def alike(devices: Table[str, Device], power: Table[str, Watts] | None = None) -> Alike:
    """JAX's devices can stand for others of their kind; in joules only if they draw the same.

    Args:
      devices: by name.
      power: watts given for some, where joules matter; None: likeness in time alone.
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
    """Those of which every distinct mapping can be made: of like devices one for each role.

    Besides them those that keep their names, see `Alike.renamed`.
    """
    taken = alike.taken(names)
    free: dict[str, list[str]] = {}
    for name in names:
        if name in alike.kinds and alike.places[name] not in taken:
            free.setdefault(alike.kinds[name], []).append(name)
    return set(names).difference(*(each[len(ROLES) :] for each in free.values()))


def distinct(mappings: Iterable[Mapping], alike: Alike) -> list[Mapping]:
    """One of all mappings that are the same up to the names of like devices, in their order."""
    found: dict[object, Mapping] = {}
    for each in mappings:
        found.setdefault(trial_key(each, alike), each)
    return list(found.values())
