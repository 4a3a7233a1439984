"""The CPU's kernels in C, behind XLA's foreign functions."""

import dataclasses
from typing import ClassVar

import jax

from accel_rl import native
from accel_rl.arguments import instance
from accel_rl.compose.devices.device import Status
from accel_rl.compose.energy import Power
from accel_rl.compose.workload import Workload


@dataclasses.dataclass(frozen=True)
class NativeDevice:
    """The sum tree in C: a Replay Manager for prioritised replay, on the host's first device."""

    status: ClassVar[Status] = "executable"
    jax_device: jax.Device
    name: str = "native"
    power: Power | None = None

    def __post_init__(self) -> None:
        """Raises TypeError if a part is of another type."""
        instance("jax_device", self.jax_device, jax.Device)

    @property
    def kind(self) -> str:
        """There is one."""
        return "native"

    @property
    def sampler_form(self) -> str:
        """The same tree, bit for bit, in C."""
        return "native"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """Only the Replay Manager of prioritised replay, and only where the kernels were built."""
        if role != "replay_manager":
            return f"it has kernels for the Replay Manager, none for the {role}"
        if workload.sampler != "prioritised":
            return f"it has a kernel for the prioritised sampler, none for {workload.sampler}"
        return native.why_absent()
