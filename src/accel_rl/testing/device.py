"""Contract check of the composer's devices; see docs/compose-device.md."""

import dataclasses
import math

import jax

from accel_rl.compose import ROLES, Device, DeviceLink, Power, Workload
from accel_rl.testing.expect import expect, expect_equal

STEPS = {"replay_manager": ("insert", "sample", "update"), "learner": ("learn", "sync")}
FORMS = ("tree", "wide", "native")


def check_device(device: Device, workload: Workload) -> None:
    """Check all answers of a device that a plan needs.

    Args:
      device: executable, simulated or modelled.
      workload: workload of a training in which the device takes a role; the check also uses a
        variant with a replay buffer and networks too large for any machine.
    """
    expect(bool(device.name) and "+" not in device.name, f"name must be without +: {device.name!r}")
    expect(bool(device.kind), "kind must not be empty")
    known = ("executable", "simulated", "modelled")
    expect(device.status in known, f"status must be one of {known}, got {device.status!r}")
    power = device.power
    expect(power is None or isinstance(power, Power), f"power must be watts or None, got {power!r}")
    refusals = {role: device.refuses(role, workload) for role in ROLES}
    for role, refusal in refusals.items():
        said = refusal is None or (isinstance(refusal, str) and bool(refusal))
        expect(said, f"refuses must say why it is no {role}, or be None, got {refusal!r}")
        expect_equal(device.refuses(role, workload), refusal, f"a second answer for {role}")
    taken = [role for role, refusal in refusals.items() if refusal is None]
    expect(bool(taken), f"a device must take a role of the workload, it refuses all: {refusals}")
    if device.status == "executable":
        place = getattr(device, "jax_device", None)
        expect(isinstance(place, jax.Device), f"jax_device must be one of JAX, got {place!r}")
        form = getattr(device, "sampler_form", None)
        expect(form in FORMS, f"sampler_form must be one of {FORMS}, got {form!r}")
        return
    link = getattr(device, "link", None)
    expect(isinstance(link, DeviceLink), f"link must be a compose.Link, got {link!r}")
    vast = dataclasses.replace(
        workload, capacity=2**40, hidden=(2**20, 2**20), batch_size=workload.batch_size
    )
    for sizes in (workload, vast):
        for role in ROLES:
            if device.refuses(role, sizes) is None:
                expect(role in STEPS, f"a device that does not run here cannot be the {role}")
                for step in STEPS[role]:
                    _check_seconds(device, step, sizes)


def _check_seconds(device: Device, step: str, workload: Workload) -> None:
    seconds = device.modelled_seconds(step, workload)  # type: ignore[attr-defined]
    what = f"modelled_seconds of {step!r}"
    expect(isinstance(seconds, float), f"{what} must be a float, got {seconds!r}")
    expect(math.isfinite(seconds) and seconds >= 0, f"{what} must be 0 or above, got {seconds}")
    expect(seconds < 1e12, f"{what} is {seconds} s: `refuses` must refuse what does not fit")
