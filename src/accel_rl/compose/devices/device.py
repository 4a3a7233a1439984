"""Contract of devices that roles are placed on."""

import dataclasses
from typing import Literal, Protocol

import jax

from accel_rl.arguments import within
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models.energy import Power

Status = Literal["executable", "simulated", "modelled"]
"""`executable`: runs here, with measured times. `simulated`: computes its results here,
with modelled times. `modelled`: times from a formula."""


@dataclasses.dataclass(frozen=True)
class DeviceLink:
    """Connection between host memory and a device, in either direction."""

    latency: float  # seconds of an empty transfer
    bandwidth: float  # bytes per second
    status: Literal["measured", "declared"]

    def __post_init__(self) -> None:
        """Raise ValueError if a figure is out of range."""
        within("latency", self.latency, "[0, inf]")
        within("bandwidth", self.bandwidth, "(0, inf]")

    def seconds(self, size: float) -> float:
        """Return the seconds to transfer `size` bytes; 0 for none."""
        return self.latency + size / self.bandwidth if size else 0.0


class Device(Protocol):
    """Properties that every device declares; see `docs/compose-device.md` to add one."""

    @property
    def name(self) -> str:
        """Name used in mappings."""

    @property
    def kind(self) -> str:
        """Kind; devices of one kind are interchangeable and profiled once."""

    @property
    def status(self) -> Status:
        """Status of the device's times; see `Status`."""

    @property
    def power(self) -> Power | None:
        """Power in watts; None if unknown."""

    def refuses(self, role: str, workload: Workload) -> str | None:
        """Return the reason why it cannot take a role of a training; None if it can."""


class Executable(Device, Protocol):
    """Device whose steps run here."""

    @property
    def jax_device(self) -> jax.Device:
        """JAX device that holds its arrays."""

    @property
    def sampler_form(self) -> str:
        """Form of the prioritised sampler that it runs; see `replay.prioritised`."""


class Modelled(Device, Protocol):
    """Device whose times are computed."""

    @property
    def link(self) -> DeviceLink:
        """Link to the host."""

    def modelled_seconds(self, step: str, workload: Workload) -> float:
        """Return the seconds of a step whose data is on the device already."""
