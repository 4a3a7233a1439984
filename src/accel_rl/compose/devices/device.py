"""Contract: Device, what tasks are placed on."""

import dataclasses
from typing import Literal, Protocol

import jax

from accel_rl.arguments import one_of, real
from accel_rl.compose.energy import Power
from accel_rl.compose.workload import Workload

Status = Literal["executable", "simulated", "modelled"]
"""`executable`: runs here, and its times are measured. `simulated`: computes here what it would
there, and its times are modelled. `modelled`: a formula."""


@dataclasses.dataclass(frozen=True)
class Link:
    """How data reaches a device from the host's memory, and goes back."""

    latency: float  # seconds of a transfer of nothing
    bandwidth: float  # bytes a second
    status: Literal["measured", "declared"]

    def __post_init__(self) -> None:
        """Raises TypeError if a number is none, ValueError if it is out of range, or the status."""
        if not real("latency", self.latency) >= 0:
            raise ValueError(f"latency must be at least 0 seconds, got {self.latency}")
        if not real("bandwidth", self.bandwidth) > 0:
            raise ValueError(f"bandwidth must be above 0 bytes a second, got {self.bandwidth}")
        one_of("status", self.status, ("measured", "declared"))

    def seconds(self, size: float) -> float:
        """Of a transfer of `size` bytes; 0 of none."""
        return self.latency + size / self.bandwidth if size else 0.0


class Device(Protocol):
    """What every device declares. See `docs/compose-device.md`, which adds one in a page."""

    @property
    def name(self) -> str:
        """By which mappings call it."""

    @property
    def kind(self) -> str:
        """Devices of one kind can stand for each other: they are profiled once."""

    @property
    def status(self) -> Status:
        """See `Status`."""

    @property
    def power(self) -> Power | None:
        """Watts; None: not known."""

    def refuses(self, role: str, workload: Workload) -> str | None:
        """Why it cannot take a role of a training; None if it can."""


class Executable(Device, Protocol):
    """A device whose steps run here."""

    @property
    def jax_device(self) -> jax.Device:
        """Where its arrays live."""

    @property
    def sampler_form(self) -> str:
        """The form of a prioritised sampler that it runs; see `replay.prioritised`."""


class Modelled(Device, Protocol):
    """A device whose times are computed."""

    @property
    def link(self) -> Link:
        """To the host."""

    def modelled_seconds(self, step: str, workload: Workload) -> float:
        """Of a step whose data is on the device already."""
