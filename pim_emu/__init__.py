"""pim_emu: UPMEM programs without UPMEM hardware. An emulator of DPUs, and a model of their time.

`build` compiles a DPU program, `run` runs it once, from arrays to arrays, and a `DpuSet` keeps its
data on the DPUs over several launches:

    program = pim_emu.build("scale.c", tasklets=16)
    result = pim_emu.run(
        program,
        dpus=64,
        broadcast={"factor": np.uint32(3)},  # the same to all DPUs
        scatter={"values": values},  # a row to each
        gather={"values": (np.int32, 1024)},
    )
    result["values"]  # [64, 1024]

    with pim_emu.DpuSet(64, program) as dpus:
        dpus.broadcast("factor", np.uint32(3))
        dpus.scatter("values", values)
        dpus.launch()
        dpus.launch()
        values = dpus.gather("values", np.int32, 1024)

A program that does not compile raises `BuildError`; a DPU that does something wrong raises
`EmulatorFault`, which names the tasklet and the line. `configure` sets seed, schedule and checks.
Host programs in C are built with what lies in the folder `sdk_path()`; the vendor's Python module
`dpu` lies there too. What a program computes is exact; cycles and seconds are modelled.
`docs/pim-emu.md` begins from zero.

It also holds descriptions of machines (`load_machine`), a sharded pmap over DPUs (`dpu_map`), and
models of pipeline and transfers (`pim_emu.cost`). What needs JAX is imported at its first use:
building and running DPU programs does without.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pim_emu import low_memory

if TYPE_CHECKING:
    from pim_emu.counters import Counters, SetCounters
    from pim_emu.dpu_set import DpuSet
    from pim_emu.execute import Result, run
    from pim_emu.host_library import DpuError, EmulatorFault
    from pim_emu.machine import Machine, available_machines, load_machine
    from pim_emu.mapping import device_map, dpu_map, dpu_mesh, pad_axis
    from pim_emu.program import BuildError, DpuProgram, build
    from pim_emu.sdk import SdkError, sdk_path
    from pim_emu.settings import configure

__version__ = "0.1.0"

__all__ = [
    "BuildError",
    "Counters",
    "DpuError",
    "DpuProgram",
    "DpuSet",
    "EmulatorFault",
    "Machine",
    "Result",
    "SdkError",
    "SetCounters",
    "available_machines",
    "build",
    "configure",
    "device_map",
    "dpu_map",
    "dpu_mesh",
    "load_machine",
    "pad_axis",
    "run",
    "sdk_path",
]
_MODULES = {
    **dict.fromkeys(("device_map", "dpu_map", "dpu_mesh", "pad_axis"), "pim_emu.mapping"),
    **dict.fromkeys(("Machine", "available_machines", "load_machine"), "pim_emu.machine"),
    **dict.fromkeys(("SdkError", "sdk_path"), "pim_emu.sdk"),
    **dict.fromkeys(("BuildError", "DpuProgram", "build"), "pim_emu.program"),
    **dict.fromkeys(("Counters", "SetCounters"), "pim_emu.counters"),
    **dict.fromkeys(("Result", "run"), "pim_emu.execute"),
    **dict.fromkeys(("DpuError", "EmulatorFault"), "pim_emu.host_library"),
    "DpuSet": "pim_emu.dpu_set",
    "configure": "pim_emu.settings",
}

low_memory.keep()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pim_emu' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
