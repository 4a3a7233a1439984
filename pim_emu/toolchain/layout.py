"""Paths of an SDK folder, and the choice of compiler and machine."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from pim_emu.machine import Machine, available_machines, load_machine
from pim_emu.toolchain.errors import DriverError

VERSION = "2025.1.0"  # of the interface
TARGET = "dpu-upmem-dpurte"
_CORES = {"v1A": "upmem-2560", "v1B": "upmem-v1b"}
# What the link script of each core leaves to programs; no constant of the cost model depends on it.
_MUTEXES = {"upmem-v1b": 64}
_MOST_MUTEXES = 56
# Search paths of the environment, and the SDK's folder in each: commands, libraries of programs
# that were linked without a run path, and the module `dpu` of host programs in Python.
SEARCH_PATHS = {
    "PATH": "bin",
    "LD_LIBRARY_PATH": "lib",
    "PYTHONPATH": "lib/python3/dist-packages",
}


@dataclasses.dataclass(frozen=True)
class SdkLayout:
    """Paths of an SDK folder."""

    root: Path

    @property
    def host_include(self) -> Path:
        """Headers of host programs."""
        return self.root / "include" / "dpu"

    @property
    def library(self) -> Path:
        """Folder of libdpu.so."""
        return self.root / "lib"

    @property
    def device_include(self) -> Path:
        """Headers of DPU programs."""
        return self.root / "share" / "upmem" / "include" / "syslib"

    @property
    def share(self) -> Path:
        """Folder of files that only the driver uses."""
        return self.root / "share" / "pim_emu"

    @property
    def device(self) -> Path:
        """Folder of the run-time sources and the linker script."""
        return self.share / "device"

    @property
    def environment(self) -> Path:
        """Shell commands that put the SDK first in the search paths."""
        return self.root / "upmem_env.sh"

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that put the SDK first in the search paths of an environment."""
        paths = {
            name: os.pathsep.join(filter(None, (str(self.root / folder), environment.get(name))))
            for name, folder in SEARCH_PATHS.items()
        }
        return {"UPMEM_HOME": str(self.root), **paths}

    @property
    def runtime_library(self) -> Path:
        """Archive that every DPU program is linked with."""
        return self.share / "lib" / "libdpurt.a"


def compiler() -> str:
    """Return the C compiler: `PIM_EMU_CC`, or gcc."""
    return os.environ.get("PIM_EMU_CC") or "gcc"


def machine_of(core: str | None) -> Machine:
    """Load the machine that programs must fit: `PIM_EMU_MACHINE`, or the core's default.

    Args:
      core: value of `-mcpu=`, or None.

    Raises:
      DriverError: if the machine or core is unknown.
    """
    name = os.environ.get("PIM_EMU_MACHINE")
    if name:
        if name not in available_machines():
            known = ", ".join(available_machines())
            raise DriverError(f"PIM_EMU_MACHINE: unknown machine '{name}'; known: {known}")
        return load_machine(name)
    if core is None:
        return load_machine()
    if core not in _CORES:
        raise DriverError(f"-mcpu={core}: unknown DPU version; known: {', '.join(_CORES)}")
    return load_machine(_CORES[core])


def most_mutexes(machine: Machine) -> int:
    """Return the number of mutexes that a program may declare."""
    return _MUTEXES.get(machine.name, _MOST_MUTEXES)
