"""Devices whose times are computed: an associative memory, an FPGA, and DPUs of UPMEM."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from accel_rl import am, pim
from accel_rl.compose.devices.device import DeviceLink, Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models import associative_memory, fpga
from accel_rl.hardware_models.energy import Power

VARIANTS: Mapping[str, str] = {"amper_fr": "fr_prefix", "amper_k": "k_counted"}
FANOUT = 16  # of the sum tree, as in PEARL
GROUPS = 20  # of AMPER, each with one search
RATIO = 0.15  # of the replay buffer in the candidate set


@dataclasses.dataclass(frozen=True)
class AssociativeMemory:
    """Replay Manager for AMPER: priorities in TCAM arrays behind a link to the host.

    AMPER's samples are computed on the host; `components` give their time in the arrays.
    """

    status: ClassVar[Status] = "modelled"
    link: DeviceLink
    components: associative_memory.Components
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
        design = associative_memory.Design(
            capacity=workload.capacity,
            variant=VARIANTS[workload.sampler],
            batch_size=workload.items(step),
        )
        sampled, updated = associative_memory.modelled_sample, associative_memory.modelled_update
        model = sampled if step == "sample" else updated
        return model(design, self.components, energy=False).modelled_latency_ns * 1e-9


@dataclasses.dataclass(frozen=True)
class FpgaDevice:
    """Replay Manager for prioritised replay, and Learner of multilayer perceptrons.

    The Replay Manager takes the cycles that our RTL takes in simulation (`docs/rtl.md`), at the
    part's clock. The networks of an agent are trained one after the other.
    """

    status: ClassVar[Status] = "modelled"
    link: DeviceLink
    part: fpga.Fpga
    name: str = "fpga"
    power: Power | None = None

    @property
    def kind(self) -> str:
        """Kind, with the name of its part."""
        return f"fpga {self.part.name}"

    def refuses(self, role: str, workload: Workload) -> str | None:
        """See `Device`; refuses other roles, other samplers, and what does not fit on the part."""
        if role not in ("replay_manager", "learner"):
            return f"it has pipelines for the Replay Manager and the Learner, none for the {role}"
        if role == "replay_manager" and workload.sampler != "prioritised":
            return f"its sum tree is of the prioritised sampler, not of {workload.sampler}"
        if role == "learner" and not workload.plain:
            return "it learns plain perceptrons, without dueling streams and noisy layers"
        try:
            self.modelled_seconds("learn" if role == "learner" else "sample", workload)
        except ValueError as error:
            return str(error)
        return None

    def modelled_seconds(self, step: str, workload: Workload) -> float:
        """Return the seconds of sum-tree operations or of an update; `sync` takes none."""
        if step == "sync":
            return 0.0
        if step == "learn":
            batch = workload.batch_size
            # Room is left for a sum tree on the same part. PEARL's depth includes the root.
            tree = fpga.pearl_replay(
                self.part, fanout=FANOUT, depth=_depth(workload) + 1, batch_size=batch
            )
            learner = fpga.pearl_learner(self.part, workload.widths, batch_size=batch, replay=tree)
            return workload.networks * learner.modelled_seconds
        operations = workload.items(step)
        ours = fpga.rtl_sum_tree(fanout=FANOUT, depth=_depth(workload), batch_size=operations)
        part = self.part
        there = part.m20k_blocks * part.m20k_bits + part.mlab_blocks * part.mlab_bits
        if ours.modelled_memory_bits > there:
            raise ValueError(
                f"a sum tree of {workload.capacity} needs {ours.modelled_memory_bits} bits of "
                f"memory, {part.name} has {there}"
            )
        cycles = ours.modelled_sample_cycles if step == "sample" else ours.modelled_update_cycles
        return cycles / self.part.clock


def _depth(workload: Workload) -> int:
    """Return the number of levels below the root."""
    depth = 1
    while FANOUT**depth < workload.capacity:
        depth += 1
    return depth


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
