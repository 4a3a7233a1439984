"""What DPU programs are built and run with: the vendor's SDK where it is, else the emulator's."""

import dataclasses
import os
from pathlib import Path

from accel_rl.pim.upmem.errors import SdkMissing
from accel_rl.pim.upmem.sdk import EMULATOR, find_sdk, why_no_emulator
from accel_rl.pim.upmem.sdk import VARIABLE as HOME
from pim_emu import available_machines
from pim_emu.sdk import SdkError, sdk_path

VARIABLE = "ACCEL_RL_UPMEM"  # which toolkit, unless an argument says so
NAMES = ("auto", "vendor", "emulator")


@dataclasses.dataclass(frozen=True)
class Toolkit:
    """An SDK.

    Attributes:
      name: "vendor" or "emulator".
      folder: its `bin` has the compiler and dpu-pkg-config.
      version: changes when what it builds may change.
    """

    name: str
    folder: Path
    version: str

    def profile(self, machine: str | None) -> str:
        """What `dpu_alloc` is told of the machine."""
        known = self.name == "emulator" and machine in available_machines()
        return f"machine={machine}" if known else ""

    def compiler_flags(self, machine: str | None) -> tuple[str, ...]:
        """Options by which a program fits the machine's core."""
        return ("-mcpu=v1B",) if machine == "upmem-v1b" else ()


def which_toolkit(name: str | None = None) -> str:
    """The name of the toolkit that `find_toolkit` takes: "vendor" or "emulator". Makes nothing.

    Raises:
      ValueError: no such toolkit.
      SdkMissing: there is none, or UPMEM_HOME names a folder that holds none; the message says
        what to install.
    """
    chosen = name or os.environ.get(VARIABLE) or "auto"
    if chosen not in NAMES:
        raise ValueError(f"sdk must be one of {', '.join(NAMES)}, got {chosen!r}")
    if chosen != "emulator":
        vendor = find_sdk()
        if vendor.found:
            return "vendor"
        if chosen == "vendor":
            raise SdkMissing(f"UPMEM's SDK was not found: {vendor.why}")
        home = os.environ.get(HOME)
        if home and not (Path(home) / EMULATOR).is_dir():  # meant, so nothing else may serve
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
    """A toolkit, which is made where it is the emulator's and not there yet.

    Args:
      name: "vendor", "emulator", or "auto": the vendor's where it is found; if None,
        `$ACCEL_RL_UPMEM`, or else "auto".

    Raises:
      ValueError, SdkMissing: as `which_toolkit`.
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
