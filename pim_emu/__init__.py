"""pim_emu: the UPMEM emulator. Machine description, sharded pmap over DPUs, and cost model."""

from pim_emu.cost import (
    ModelledSeconds,
    Roofline,
    Workload,
    check_fits,
    modelled_seconds,
    roofline,
    split_rows,
    strong_scaling,
)
from pim_emu.dpu_map import device_map, dpu_map, dpu_mesh, pad_axis
from pim_emu.machine import Machine, available_machines, load_machine

__all__ = [
    "Machine",
    "ModelledSeconds",
    "Roofline",
    "Workload",
    "available_machines",
    "check_fits",
    "device_map",
    "dpu_map",
    "dpu_mesh",
    "load_machine",
    "modelled_seconds",
    "pad_axis",
    "roofline",
    "split_rows",
    "strong_scaling",
]
