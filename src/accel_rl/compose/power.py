"""Watts of devices, from the configuration, from the devices themselves, or from data sheets."""

import functools
import tomllib
from collections.abc import Mapping as Table
from importlib import resources
from typing import Any

import jax

from accel_rl.arguments import one_of
from accel_rl.compose.devices import Device, NativeDevice
from accel_rl.experiment.configuration import ComposeConfig
from accel_rl.hardware_models.energy import Power
from accel_rl.io.machine import core_count, cpu_name


def power_of(wanted: ComposeConfig, devices: Table[str, Device]) -> dict[str, Power] | None:
    """Return the watts of all devices, or None if some are unknown.

    Data sheets are read for objectives that need joules, and only where no watts of any device are
    given.

    Raises:
      ValueError: if the objective needs watts that are unknown.
    """
    for name in wanted.power:
        one_of("compose.power", name, devices)
    found = {name: _given(wanted, name) or each.power for name, each in devices.items()}
    # Sheets lack the idle power, which others include: a mix would favour the devices of sheets.
    if wanted.objective != "throughput" and not any(found.values()):
        found = {name: sheet_power(each) for name, each in devices.items()}
    known = {name: power for name, power in found.items() if power is not None}
    missing = [name for name in found if name not in known]
    if missing and wanted.objective != "throughput":
        raise ValueError(
            f"compose.power must give watts of {', '.join(missing)} for the objective "
            f"{wanted.objective}: no figure of theirs is known"
        )
    return None if missing else known


def sheet_power(device: Device) -> Power | None:
    """Return the declared busy power of a device's data sheet, or None if it is not listed.

    The idle power is 0, because sheets give none: joules are those of busy devices. A CPU's figure
    is divided by its threads. JAX's host devices share the threads that this process may use;
    `native` works on one.
    """
    place = getattr(device, "jax_device", None)
    if place is None:
        return None
    if place.platform != "cpu":
        listed = [each for each in _sheets()["gpu"] if place.device_kind in each["names"]]
        return _declared(listed[0], 1, "") if listed else None
    model = f"{cpu_name()} "
    listed = [
        each
        for each in _sheets()["cpu"]
        if any(model.startswith(f"{name} ") for name in each["names"])
    ]
    if not listed:
        return None
    threads = 1.0
    if not isinstance(device, NativeDevice):
        threads = core_count() / len(jax.local_devices(backend="cpu"))
    all_threads = listed[0]["threads"]
    share = f", {threads:g} of {all_threads} threads"
    return _declared(listed[0], threads / all_threads, share)


def _given(wanted: ComposeConfig, name: str) -> Power | None:
    if name not in wanted.power:
        return None
    return Power(*wanted.power[name], status="declared", source="the configuration")


def _declared(sheet: dict[str, Any], share: float, note: str) -> Power:
    source = f"{sheet['source']}: {sheet['figure']} {sheet['watts']} W{note}, idle not given"
    return Power(0.0, share * sheet["watts"], "declared", source)


@functools.cache
def _sheets() -> dict[str, list[dict[str, Any]]]:
    text = (resources.files("accel_rl.compose") / "sheets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
