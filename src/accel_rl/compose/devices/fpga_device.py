"""FPGA with analytic models: our sum tree in RTL, and PEARL's learner pipeline."""

import dataclasses
from typing import ClassVar

from accel_rl.compose.devices.device import DeviceLink, Status
from accel_rl.compose.workload import Workload
from accel_rl.hardware_models import fpga
from accel_rl.hardware_models.energy import Power

FANOUT = 16  # of the sum tree, as in PEARL


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
