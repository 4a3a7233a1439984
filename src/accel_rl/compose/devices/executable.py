"""Devices that run here: JAX devices, and native kernels on the CPU."""

import dataclasses
from typing import ClassVar

import jax

from accel_rl import native
from accel_rl.compose.devices.device import Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models.energy import Power


@dataclasses.dataclass(frozen=True)
class JaxDevice:
    """One of `jax.devices()`, with a name like `cpu:0` or `gpu:1`; takes every role."""

    status: ClassVar[Status] = "executable"
    name: str
    jax_device: jax.Device
    power: Power | None = None

    @property
    def kind(self) -> str:
        """Kind: platform and model."""
        return f"{self.jax_device.platform} {self.jax_device.device_kind}"

    @property
    def sampler_form(self) -> str:
        """Sampler form: a tree on CPUs; wide sums on accelerators, which need parallel work."""
        return "tree" if self.jax_device.platform == "cpu" else "wide"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """Return None: every role is accepted."""
        del role, workload
        return None


@dataclasses.dataclass(frozen=True)
class NativeDevice:
    """Replay Manager for prioritised replay: the sum tree in C, on the host's first device."""

    status: ClassVar[Status] = "executable"
    jax_device: jax.Device
    name: str = "native"
    power: Power | None = None

    @property
    def kind(self) -> str:
        """Kind of the only native device."""
        return "native"

    @property
    def sampler_form(self) -> str:
        """Sampler form: the sum tree in C, bit-identical to the tree in JAX."""
        return "native"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """See `Device`; takes only prioritised replay's Replay Manager, if kernels are built."""
        if role != "replay_manager":
            return f"it has kernels for the Replay Manager, none for the {role}"
        if workload.sampler != "prioritised":
            return f"it has a kernel for the prioritised sampler, none for {workload.sampler}"
        return native.why_absent()
