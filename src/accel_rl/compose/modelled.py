"""Costs of steps on devices that do not run here: a device's own model, and its link."""

from collections.abc import Mapping as Table
from typing import cast

from accel_rl.compose.costs import Cost, Costs, Source
from accel_rl.compose.devices import Device, Modelled
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.placing import stand_ins
from accel_rl.compose.workload import WORD, Workload

STORE = {"insert": "write", "sample": "gather"}
"""The Data Storage's part of steps that it shares with the Replay Manager."""


def modelled_cost(
    step: str,
    mapping: Mapping,
    devices: Table[str, Device],
    workload: Workload,
    costs: Costs,
) -> Cost:
    """What a step costs in a mapping with devices that do not run.

    A role on such a device takes what its model says, and what it is handed crosses its link. What
    runs is measured: with the actor's device in place of those that do not.
    """
    absent = [name for name in mapping.involved(step) if devices[name].status != "executable"]
    real = stand_ins(mapping, devices)
    if not absent:
        return costs.step(real, step)
    seconds, spread = 0.0, 0.0
    taking = [name for name in dict.fromkeys(mapping.busy(step)) if name in absent]
    for name in taking:
        seconds += cast(Modelled, devices[name]).modelled_seconds(step, workload)
    if step in STORE and mapping.data_storage not in absent:
        part = STORE[step] if mapping.replay_manager in absent else step
        found = costs.step(real, part)
        seconds, spread = seconds + found.seconds, found.spread
    elif not taking:
        found = costs.step(real, step)
        seconds, spread = found.seconds, found.spread
    for name in dict.fromkeys(absent):
        link = cast(Modelled, devices[name]).link
        seconds += link.seconds(_crossing(step, name, mapping, workload))
    sources = {devices[name].status for name in absent}
    source: Source = "modelled" if "modelled" in sources else "simulated"
    return Cost(seconds, spread, source)


def _crossing(step: str, name: str, mapping: Mapping, workload: Workload) -> int:
    """Bytes that cross a device's link in a step: what the device is handed, or hands on."""
    manages, learns = name == mapping.replay_manager, name in mapping.learner
    if step == "collect":
        return workload.bytes_of("collect") if learns else 0
    if step == "insert":
        return workload.rows * WORD if manages else 0
    if step == "sample":  # the batch goes to the learner as soon as it is drawn
        return workload.index_bytes * manages + workload.bytes_of("learn") * learns
    return workload.bytes_of("update") if step == "update" else 0
