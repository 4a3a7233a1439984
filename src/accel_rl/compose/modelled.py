"""Costs of steps on devices that do not run here, from a device's model and its link."""

import itertools
from collections.abc import Mapping as Table
from typing import cast

from accel_rl.compose.costs import Cost, Costs, Key, Source
from accel_rl.compose.devices import Device, Modelled
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.placing import stand_ins
from accel_rl.compose.workload import STEPS, WORD, Workload

STORE = {"insert": "write", "sample": "gather"}
"""Step -> the Data Storage's part of it, for steps shared with the Replay Manager."""


def modelled_cost(
    step: str,
    mapping: Mapping,
    devices: Table[str, Device],
    workload: Workload,
    costs: Costs,
) -> Cost:
    """Return the cost of a step in a mapping with devices that do not run here.

    A role on such a device takes the time of its model, and its data crosses its link. All other
    roles are measured, with the actor's device in place of those that do not run.
    """
    absent = [name for name in mapping.involved(step) if devices[name].status != "executable"]
    real = stand_ins(mapping, devices)
    if not absent:
        return costs.step(real, step)
    seconds, spread = 0.0, 0.0
    taking = [name for name in dict.fromkeys(mapping.busy(step)) if name in absent]
    # Models give the time of a single update, measured steps that of a group.
    times = (costs.group or 1) if step in ("sample", "learn") else 1
    for name in taking:
        seconds += times * cast(Modelled, devices[name]).modelled_seconds(step, workload)
    if step in STORE:
        store = costs.step(real, STORE[step])
        both = costs.step(real, step)
        if mapping.replay_manager not in absent:
            # The measured step includes what the stand-in did for an absent Data Storage.
            there = mapping.data_storage in absent
            seconds += both.seconds - (min(store.seconds, both.seconds) if there else 0)
            spread = both.spread
        elif mapping.data_storage not in absent:
            seconds, spread = seconds + store.seconds, store.spread
    elif not taking:
        found = costs.step(real, step)
        seconds, spread = found.seconds, found.spread
    for name in dict.fromkeys(absent):
        link = cast(Modelled, devices[name]).link
        seconds += link.seconds(times * _crossing(step, name, mapping, workload))
    sources = {devices[name].status for name in absent}
    source: Source = "modelled" if "modelled" in sources else "simulated"
    return Cost(seconds, spread, source)


def modelled_slowdowns(
    mapping: Mapping, devices: Table[str, Device], costs: Costs
) -> dict[Key, float]:
    """Return slowdowns between steps that keep the host busy, as measured with stand-ins."""
    real = stand_ins(mapping, devices)

    def on_host(step: str) -> bool:
        return any(devices[name].status == "executable" for name in mapping.busy(step))

    steps = [step for step in STEPS if on_host(step)]
    return {
        costs.key(mapping, *pair): costs.slowdown(real, *pair)
        for pair in itertools.permutations(steps, 2)
    }


def _crossing(step: str, name: str, mapping: Mapping, workload: Workload) -> int:
    """Return the bytes that a device receives and sends over its link in a step."""
    manages, learns = name == mapping.replay_manager, name in mapping.learner
    stores = name == mapping.data_storage
    if step == "collect":
        return workload.bytes_of("collect") if learns else 0
    if step == "insert":
        return workload.rows * WORD * manages + workload.bytes_of("insert") * stores
    if step == "sample":  # the batch goes to the learner as soon as it is drawn
        batch = workload.bytes_of("learn") * (learns + stores)
        return workload.index_bytes * (manages + stores) + batch
    # Priorities do not leave a device that is both learner and Replay Manager.
    return workload.bytes_of("update") if step == "update" and not (manages and learns) else 0
