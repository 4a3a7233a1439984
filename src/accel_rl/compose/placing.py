"""Conversion of a mapping to what `train` runs: a program and a placement of its steps."""

import functools
import json
from collections.abc import Mapping as Table
from typing import cast

import jax

from accel_rl.compose.devices import Device, Executable
from accel_rl.compose.mapping import Mapping
from accel_rl.experiment import Experiment, assemble
from accel_rl.experiment.configuration import from_mapping, to_mapping
from accel_rl.train import Placement, Program


def program_for(experiment: Experiment, mapping: Mapping, devices: Table[str, Device]) -> Program:
    """Return the experiment's program, with the sampler form of the Replay Manager's device."""
    tables = to_mapping(experiment.configuration)
    if tables["replay"]["sampler"] == "prioritised":
        tables["replay"]["form"] = executable(devices, mapping.replay_manager).sampler_form
    return _program(json.dumps(tables))


@functools.lru_cache(maxsize=16)
def _program(tables: str) -> Program:
    """Build each program once, because compiled functions are cached by program."""
    return assemble(from_mapping(json.loads(tables))).program


def placement(mapping: Mapping, devices: Table[str, Device]) -> Placement:
    """Return the placement of a mapping whose devices are all executable."""

    def place(name: str) -> jax.Device:
        return executable(devices, name).jax_device

    return Placement(
        act=place(mapping.actor),
        replay=place(mapping.replay_manager),
        store=place(mapping.data_storage),
        learn=[place(name) for name in mapping.learner],
    )


def stand_ins(mapping: Mapping, devices: Table[str, Device]) -> Mapping:
    """Replace devices that cannot run by the actor's device, which always can."""

    def real(name: str) -> str:
        return name if devices[name].status == "executable" else mapping.actor

    return Mapping(
        mapping.executor,
        mapping.actor,
        real(mapping.replay_manager),
        real(mapping.data_storage),
        tuple(dict.fromkeys(real(name) for name in mapping.learner)),
    )


def executable(devices: Table[str, Device], name: str) -> Executable:
    """Return a device by name, which must be executable."""
    return cast(Executable, devices[name])
