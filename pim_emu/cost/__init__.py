"""The cost model: modelled time and energy of tabular training on UPMEM DPUs.

`docs/cost-model.md` states what is modelled, the equations and the assumptions. Nothing has been
run on UPMEM hardware.
"""

from pim_emu.cost.instructions import (
    NUMERICS,
    UpdateInstructions,
    arithmetic_operations,
    load_calibration,
    update_instructions,
)
from pim_emu.cost.kernel import KernelCycles, pass_cycles
from pim_emu.cost.limits import check_fits
from pim_emu.cost.model import ModelledSeconds, ScalingPoint, modelled_seconds, strong_scaling
from pim_emu.cost.pipeline import ownership_imbalance
from pim_emu.cost.roofline import Roofline, peak_updates, roofline
from pim_emu.cost.transfers import broadcast_seconds, pull_seconds, push_seconds
from pim_emu.cost.workload import DpuWorkload, split_rows

__all__ = [
    "NUMERICS",
    "DpuWorkload",
    "KernelCycles",
    "ModelledSeconds",
    "Roofline",
    "ScalingPoint",
    "UpdateInstructions",
    "arithmetic_operations",
    "broadcast_seconds",
    "check_fits",
    "load_calibration",
    "modelled_seconds",
    "ownership_imbalance",
    "pass_cycles",
    "peak_updates",
    "pull_seconds",
    "push_seconds",
    "roofline",
    "split_rows",
    "strong_scaling",
    "update_instructions",
]
