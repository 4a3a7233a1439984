"""JAX devices: cores of this host, or accelerators."""

import dataclasses
from typing import ClassVar

import jax

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
