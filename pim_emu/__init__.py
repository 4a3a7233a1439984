"""pim_emu: the UPMEM emulator. Machine description, sharded pmap over DPUs, and cost model.

What needs JAX is imported when it is first used: building and running DPU programs does without.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from pim_emu.dpu_set import (
        Counters,
        DpuFault,
        DpuSet,
        SetCounters,
        configure,
    )
    from pim_emu.execute import Result, run
    from pim_emu.host_library import DpuError
    from pim_emu.machine import Machine, available_machines, load_machine
    from pim_emu.mapping import device_map, dpu_map, dpu_mesh, pad_axis
    from pim_emu.program import BuildError, Program, build
    from pim_emu.sdk import SdkError, sdk_path

__all__ = [
    "BuildError",
    "Counters",
    "DpuError",
    "DpuFault",
    "DpuSet",
    "Machine",
    "ModelledSeconds",
    "Program",
    "Result",
    "Roofline",
    "SdkError",
    "SetCounters",
    "Workload",
    "available_machines",
    "build",
    "check_fits",
    "configure",
    "device_map",
    "dpu_map",
    "dpu_mesh",
    "load_machine",
    "modelled_seconds",
    "pad_axis",
    "roofline",
    "run",
    "sdk_path",
    "split_rows",
    "strong_scaling",
]
_MODULES = {
    **dict.fromkeys(("device_map", "dpu_map", "dpu_mesh", "pad_axis"), "pim_emu.mapping"),
    **dict.fromkeys(("Machine", "available_machines", "load_machine"), "pim_emu.machine"),
    **dict.fromkeys(("SdkError", "sdk_path"), "pim_emu.sdk"),
    **dict.fromkeys(("BuildError", "Program", "build"), "pim_emu.program"),
    **dict.fromkeys(
        ("Counters", "DpuFault", "DpuSet", "SetCounters", "configure"), "pim_emu.dpu_set"
    ),
    **dict.fromkeys(("Result", "run"), "pim_emu.execute"),
    "DpuError": "pim_emu.host_library",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pim_emu' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULES.get(name, "pim_emu.cost")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
