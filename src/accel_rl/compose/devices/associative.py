"""AMPER's associative memory, with the latency model of `hardware_models.associative_memory`."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from accel_rl.compose.devices.device import DeviceLink, Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.energy import Power

VARIANTS: Mapping[str, str] = {"amper_fr": "fr_prefix", "amper_k": "k_counted"}


@dataclasses.dataclass(frozen=True)
class AssociativeMemory:
    """Replay Manager for AMPER: priorities in TCAM arrays behind a link to the host.

    AMPER's samples are computed on the host; `components` give their time in the arrays.
    """

    status: ClassVar[Status] = "modelled"
    link: DeviceLink
    components: hardware.Components
    name: str = "am"
    power: Power | None = None

    @property
    def kind(self) -> str:
        """Kind, with the name of its arrays."""
        return f"associative memory, {self.components.tcam}"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """See `Device`; takes only AMPER's Replay Manager, if all required figures are known."""
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
        """Return the seconds of sampling, or of writing an update's or insertion's priorities."""
        design = hardware.Design(
            capacity=workload.capacity,
            variant=VARIANTS[workload.sampler],
            batch_size=workload.items(step),
        )
        model = hardware.modelled_sample if step == "sample" else hardware.modelled_update
        return model(design, self.components, energy=False).modelled_latency_ns * 1e-9
