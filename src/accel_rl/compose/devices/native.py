"""Native device: C kernels on the CPU, called through XLA's foreign function interface."""

import dataclasses
from typing import ClassVar

import jax

from accel_rl import native
from accel_rl.compose.devices.device import Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models.energy import Power


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
