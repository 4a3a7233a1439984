"""UPMEM processing-in-memory: AMPER's searches on DPUs, run and timed by the emulator."""

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from accel_rl import am, pim
from accel_rl.compose.devices.device import DeviceLink, Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models.energy import Power

GROUPS = 20  # of AMPER, each with one search
RATIO = 0.15  # of the replay buffer in the candidate set


@dataclasses.dataclass(frozen=True)
class UpmemDevice:
    """Replay Manager for AMPER-fr: priorities are held and searched in the DPUs' memories.

    Times are those of `pim.modelled.parts_of_searches`, transfers included, for a search that the
    emulator ran with random keys. Networks do not suit DPUs, which have no floating-point units.
    Tables do: in `pim.train` a whole training is a single role.
    """

    status: ClassVar[Status] = "simulated"
    dpus: int = 64
    name: str = "upmem"
    power: Power | None = None

    @property
    def kind(self) -> str:
        """Kind, with the number of DPUs."""
        return f"upmem, {self.dpus} DPUs"

    @property
    def link(self) -> DeviceLink:
        """Link without cost, because the modelled seconds include the transfers."""
        return DeviceLink(0.0, float("inf"), "declared")

    def refuses(self, role: str, workload: Workload) -> str | None:
        """See `Device`; takes only AMPER-fr's Replay Manager, if the emulator can be built."""
        if role != "replay_manager":
            return f"it searches priorities and learns tables (see pim.train), which is no {role}"
        if workload.sampler != "amper_fr":
            return f"it searches as amper_fr does, not as {workload.sampler}"
        try:
            self.modelled_seconds("sample", workload)
        except (ValueError, pim.upmem.UpmemError) as error:
            return str(error)
        return None

    def modelled_seconds(self, step: str, workload: Workload) -> float:
        """Return the seconds of the search of a sampling, or of writing priorities."""
        return _seconds(step == "sample", self.dpus, workload.capacity, workload.items(step))


@functools.lru_cache(maxsize=64)
def _seconds(searches: bool, dpus: int, capacity: int, writes: int) -> float:
    """Return modelled seconds of one search of all groups, or of one update."""
    draw = np.random.default_rng(0)

    def keys(priorities: np.ndarray) -> np.ndarray:
        return np.asarray(am.encode(priorities.astype(np.float32), bits=32))

    with pim.match.KeyMemory(keys(draw.random(capacity)), dpus) as memory:
        before = memory.report()
        if searches:
            values = (np.arange(GROUPS) + draw.random(GROUPS)) / GROUPS  # one in each group
            memory.any_radius(keys(values), keys(RATIO / GROUPS * values))
        else:
            memory.update(draw.integers(0, capacity, writes), keys(draw.random(writes)))
        done = memory.report().since(before)
    return sum(pim.modelled.parts_of_searches(pim.load_machine(), done).values())
