"""Detection of UPMEM's SDK and of ranks of real DPUs.

Device nodes are listed and never opened, so that detection does not disturb other processes.
"""

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pim_emu import sdk

COMPILER = "dpu-upmem-dpurte-clang"
PKG_CONFIG = "dpu-pkg-config"
# Marks the SDK folder of the emulator, whose commands have the same names.
EMULATOR = Path("share", "pim_emu")
VARIABLE = "UPMEM_HOME"  # set by the SDK's own upmem_env.sh
DEVICES = Path("/dev")
DPUS_PER_RANK = 64  # in hardware; some may be disabled


@dataclasses.dataclass(frozen=True)
class Sdk:
    """Result of looking for the vendor's SDK.

    Attributes:
      found: whether any of its commands is present.
      where: folder of its commands.
      version: version that dpu-pkg-config prints; None if it prints none.
      why: how the SDK was found and what it lacks, or why it was not found and what to do.
    """

    found: bool
    where: str | None
    version: str | None
    why: str


def find_sdk(environment: Mapping[str, str] | None = None, *, timeout: float = 10) -> Sdk:
    """Look for the SDK in the folder that UPMEM_HOME names, then along PATH.

    Args:
      environment: environment variables; those of this process if None.
      timeout: seconds that dpu-pkg-config may take to print the version.
    """
    environment = os.environ if environment is None else environment
    home = environment.get(VARIABLE)
    reasons = [f"{VARIABLE} is {home}" if home else f"{VARIABLE} is not set"]
    if home:
        folder = Path(home) / "bin"
        if shutil.which(COMPILER, path=str(folder)):
            return _describe(folder, reasons, environment, timeout)
        reasons.append(f"{folder} has no {COMPILER}")
    for name in (COMPILER, PKG_CONFIG):
        command = shutil.which(name, path=environment.get("PATH", ""))
        if command:
            reasons.append(f"{name} is on PATH")
            return _describe(Path(command).absolute().parent, reasons, environment, timeout)
    reasons.append(f"neither {COMPILER} nor {PKG_CONFIG} is on PATH")
    reasons.append("install UPMEM's SDK and source its upmem_env.sh")
    return Sdk(False, None, None, "; ".join(reasons))


def count_ranks(devices: Path = DEVICES) -> int:
    """Count the ranks of real DPUs, by their device nodes dpu_rank0, dpu_rank1 and so on.

    Args:
      devices: folder of device nodes; there are no ranks if it is absent.
    """
    if not devices.is_dir():
        return 0
    return sum(bool(re.fullmatch(r"dpu_rank\d+", name)) for name in os.listdir(devices))


def _describe(
    folder: Path, reasons: list[str], environment: Mapping[str, str], timeout: float
) -> Sdk:
    if (folder.parent / EMULATOR).is_dir():
        reasons = [*reasons, f"the commands in {folder} are the emulator's, pim_emu"]
        return Sdk(False, None, None, "; ".join(reasons))
    missing = [name for name in (COMPILER, PKG_CONFIG) if not shutil.which(name, path=str(folder))]
    reasons = reasons + [f"{folder} has no {name}" for name in missing]
    version = None
    if PKG_CONFIG not in missing:
        try:
            version = _version(folder / PKG_CONFIG, environment, timeout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            reasons.append(f"its version is unknown: {error}")
    return Sdk(True, str(folder), version, "; ".join(reasons))


def _version(command: Path, environment: Mapping[str, str], timeout: float) -> str:
    done = subprocess.run(
        [str(command), "--modversion", "dpu"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=timeout,
        encoding="utf-8",
        errors="replace",
    )
    stated = done.stdout.strip()
    if not re.fullmatch(r"\d[\w.+-]*", stated):
        raise ValueError(f"{PKG_CONFIG} --modversion dpu printed {stated[:40]!r}")
    return stated


def why_no_emulator() -> str | None:
    """Return why `pim_emu` cannot build DPU programs on this host, or None if it can."""
    return sdk.why_absent()
