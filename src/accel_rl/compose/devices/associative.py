"""AMPER's associative memory, by the latency model of `am.hardware`."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from accel_rl.am import hardware
from accel_rl.arguments import instance
from accel_rl.compose.devices.device import Link, Status
from accel_rl.compose.energy import Power
from accel_rl.compose.workload import Workload

VARIANTS: Mapping[str, str] = {"amper_fr": "fr_prefix", "amper_k": "k_counted"}


@dataclasses.dataclass(frozen=True)
class AssociativeMemory:
    """A Replay Manager for AMPER: the priorities in TCAM arrays behind a link to the host.

    What AMPER draws is computed on the host; `components` give its time in the arrays.
    """

    status: ClassVar[Status] = "modelled"
    link: Link
    components: hardware.Components
    name: str = "am"
    power: Power | None = None

    def __post_init__(self) -> None:
        """Raises TypeError if a part is of another type."""
        instance("link", self.link, Link)
        instance("components", self.components, hardware.Components)

    @property
    def kind(self) -> str:
        """By its arrays."""
        return f"associative memory, {self.components.tcam}"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """Only AMPER's Replay Manager, and only where all figures that it needs are known."""
        if role != "replay_manager":
            return f"it searches priorities, which is no {role}"
        if workload.sampler not in VARIANTS:
            return f"it samples as {' or '.join(VARIANTS)} do, not {workload.sampler}"
        try:
            self.modelled_seconds("sample", workload)
            self.modelled_seconds("update", workload)
        except ValueError as error:
            return str(error)
        return None

    def modelled_seconds(self, step: str, workload: Workload) -> float:
        """Of sampling, or of writing priorities: an update's batch, or an insertion's rows."""
        design = hardware.Design(
            capacity=workload.capacity,
            variant=VARIANTS[workload.sampler],
            batch_size=workload.items(step),
        )
        model = hardware.modelled_sample if step == "sample" else hardware.modelled_update
        return model(design, self.components, energy=False).modelled_latency_ns * 1e-9
