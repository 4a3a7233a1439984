"""Toolkits that build and run DPU programs: the vendor's SDK if present, else the emulator's."""

import dataclasses
import os
from pathlib import Path

from accel_rl.arguments import one_of
from accel_rl.pim.upmem.errors import SdkMissing
from accel_rl.pim.upmem.sdk import EMULATOR, find_sdk, why_no_emulator
from accel_rl.pim.upmem.sdk import VARIABLE as HOME
from pim_emu import Machine, available_machines, load_machine
from pim_emu.sdk import SdkError, sdk_path

VARIABLE = "ACCEL_RL_UPMEM"  # environment variable with the default toolkit
NAMES = ("auto", "vendor", "emulator")


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """SDK that builds and runs DPU programs.

    Attributes:
      name: "vendor" or "emulator".
      folder: folder whose `bin` has the compiler and dpu-pkg-config.
      version: changes whenever builds may change.
    """

    name: str
    folder: Path
    version: str

    def profile(self, machine: str | None) -> str:
        """Return the profile string of the machine for `dpu_alloc`."""
        known = self.name == "emulator" and machine in available_machines()
        return f"machine={machine}" if known else ""

    def compiler_flags(self, machine: str | None) -> tuple[str, ...]:
        """Return the compiler options for the machine's core."""
        return ("-mcpu=v1B",) if machine == "upmem-v1b" else ()


def known_machine(name: str | None) -> Machine:
    """Load a machine that DPU programs can be built for; the default machine if None."""
    if name is None:
        return load_machine()
    one_of("machine", name, available_machines())
    return load_machine(name)


def which_toolkit(name: str | None = None) -> str:
    """Return the name of the toolkit that `find_toolkit` chooses, without creating a toolkit.

    Returns "vendor" or "emulator".

    Raises:
      ValueError: if the name is unknown.
      SdkMissing: if there is no toolkit, or UPMEM_HOME names a folder without one; the message says
        what to install.
    """
    chosen = name or os.environ.get(VARIABLE) or "auto"
    one_of("sdk", chosen, NAMES)
    if chosen != "emulator":
        vendor = find_sdk()
        if vendor.found:
            return "vendor"
        if chosen == "vendor":
            raise SdkMissing(f"UPMEM's SDK was not found: {vendor.why}")
        home = os.environ.get(HOME)
        if home and not (Path(home) / EMULATOR).is_dir():  # set on purpose: no fallback
            raise SdkMissing(
                f"{vendor.why}; or unset {HOME}, or {VARIABLE}=emulator, for our emulator of it"
            )
    why = why_no_emulator()
    if why:
        raise SdkMissing(
            f"UPMEM's SDK was not found, and pim_emu, our emulator of it, cannot run here: {why}"
        )
    return "emulator"


def find_toolkit(name: str | None = None) -> Toolkit:
    """Return a toolkit; create the emulator's if it does not exist yet.

    Args:
      name: "vendor", "emulator", or "auto" for the vendor's if it is found, else the emulator's.
        If None, `$ACCEL_RL_UPMEM`, or else "auto".
    """
    if which_toolkit(name) == "emulator":
        try:
            folder = sdk_path()
        except SdkError as error:
            raise SdkMissing(
                f"pim_emu, the emulator of UPMEM's SDK, cannot be made: {error}"
            ) from error
        return Toolkit("emulator", folder, folder.name)
    vendor = find_sdk()
    return Toolkit("vendor", Path(str(vendor.where)).parent, vendor.version or "unknown")
