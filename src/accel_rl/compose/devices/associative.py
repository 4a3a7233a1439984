"""AMPER's associative memory, with the latency model of `am.hardware`."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from accel_rl.am import hardware
from accel_rl.compose.devices.device import Link, Status
from accel_rl.compose.energy import Power
from accel_rl.compose.workload import Workload

VARIANTS: Mapping[str, str] = {"amper_fr": "fr_prefix", "amper_k": "k_counted"}


@dataclasses.dataclass(frozen=True)
class AssociativeMemory:
    """Replay Manager for AMPER: priorities in TCAM arrays behind a link to the host.

    AMPER's samples are computed on the host; `components` give their time in the arrays.
    """

    status: ClassVar[Status] = "modelled"
    link: Link
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
