"""Commands `dpu-diag`, which describes the emulated machines, and `dpu-lldb`: use gdb."""

import os
import sys

from pim_emu.machine import available_machines, load_machine
from pim_emu.toolchain.layout import VERSION, SdkLayout

DIAGNOSE = "dpu-diag"
DEBUG = "dpu-lldb"


def diagnose(sdk: SdkLayout, arguments: list[str]) -> int:
    """Print version and machines; return the exit status.

    Options of the vendor's command choose tests of hardware, of which there is none: any argument
    is refused.
    """
    if arguments:
        print(f"{DIAGNOSE}: error: no hardware to test with {arguments[0]}", file=sys.stderr)
        return 1
    chosen = os.environ.get("PIM_EMU_MACHINE") or load_machine().name
    if chosen not in available_machines():
        print(f"{DIAGNOSE}: error: PIM_EMU_MACHINE: unknown machine '{chosen}'", file=sys.stderr)
        return 1
    print(f"emulated by pim_emu, interface of version {VERSION}")
    print(f"SDK folder {sdk.root}")
    for name in available_machines():
        machine = load_machine(name)
        print(
            f"machine {name}{' (used)' if name == chosen else ''}: {machine.ranks} ranks of "
            f"{machine.dpus_per_rank} DPUs, {machine.clock_hz / 1e6:g} MHz, "
            f"{machine.max_tasklets} tasklets, MRAM {machine.mram_bytes >> 20} MiB, "
            f"WRAM {machine.wram_bytes} B, IRAM {machine.iram_instructions} instructions"
        )
    return 0


def debug(sdk: SdkLayout, arguments: list[str]) -> int:
    """Say how DPU programs are debugged here; return the exit status of a failure."""
    del arguments
    print(
        f"{DEBUG}: error: not emulated. A DPU program runs in the process of its host program, so "
        "gdb debugs both:\n"
        "  PIM_EMU_WORKERS=1 gdb -ex 'tbreak dpu_launch' -ex run "
        "-ex 'add-symbol-file DPU_PROGRAM' HOST_PROGRAM\n"
        f"with libdpu.so of {sdk.library}.",
        file=sys.stderr,
    )
    return 1
