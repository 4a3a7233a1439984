"""The mappings that there are, and which of them are the same up to the names of like devices."""

import itertools
from collections.abc import Iterable
from collections.abc import Mapping as Table

from accel_rl.compose.costs import trial_key
from accel_rl.compose.devices import Device, JaxDevice
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.workload import ROLES, Workload


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


def alike(devices: Table[str, Device]) -> dict[str, str]:
    """Kinds of the devices that others of their kind can stand for: JAX's."""
    return {name: each.kind for name, each in devices.items() if isinstance(each, JaxDevice)}


def distinct(mappings: Iterable[Mapping], alike: Table[str, str]) -> list[Mapping]:
    """One of all mappings that are the same up to the names of like devices, in their order."""
    found: dict[object, Mapping] = {}
    for each in mappings:
        found.setdefault(trial_key(each, alike), each)
    return list(found.values())
