"""Cost model: modelled time and energy of tabular training on UPMEM DPUs.

`docs/cost-model.md` states what is modelled, the equations and the assumptions. Nothing has been
run on UPMEM hardware.
"""

from accel_rl.pim.cost.cycles import KernelCycles
from accel_rl.pim.cost.instructions import (
    NUMERICS,
    UpdateInstructions,
    arithmetic_operations,
    load_calibration,
    owner_instructions,
    update_instructions,
)
from accel_rl.pim.cost.kernel import ownership_imbalance, pass_cycles
from accel_rl.pim.cost.limits import check_fits
from accel_rl.pim.cost.model import (
    ModelledSeconds,
    ScalingPoint,
    launch_sensitivity,
    modelled_seconds,
    strong_scaling,
)
from accel_rl.pim.cost.owner import SortedLog, sort_log
from accel_rl.pim.cost.roofline import Roofline, peak_updates, roofline
from accel_rl.pim.cost.workload import DpuWorkload, OwnerExchange, split_rows

__all__ = [
    "NUMERICS",
    "DpuWorkload",
    "KernelCycles",
    "ModelledSeconds",
    "OwnerExchange",
    "Roofline",
    "ScalingPoint",
    "SortedLog",
    "UpdateInstructions",
    "arithmetic_operations",
    "check_fits",
    "launch_sensitivity",
    "load_calibration",
    "modelled_seconds",
    "owner_instructions",
    "ownership_imbalance",
    "pass_cycles",
    "peak_updates",
    "roofline",
    "sort_log",
    "split_rows",
    "strong_scaling",
    "update_instructions",
]
