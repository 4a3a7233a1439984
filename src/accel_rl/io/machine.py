"""Description of the present machine, for records of runs and benchmarks."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from accel_rl.io.values import Json


def describe_machine() -> dict[str, Json]:
    """Return CPU, available cores, caches, GPU, bytes of memory and operating system.

    Entries that cannot be read are missing or None. No library is initialised on the GPU.
    """
    found: dict[str, Json] = {
        "cpu": cpu_name(),
        "cores": core_count(),
        "caches": _caches(),
        "gpu": _gpu(),
        "system": platform.platform(),
    }
    if {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(os.sysconf_names):
        found["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return found


def core_count() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """Return the CPU's model name, or its architecture if the system reports no model."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        if models:
            return models[0].split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / x).read_text().strip() for x in ("level", "type", "size"))
        caches[f"L{level} {kind.lower()}"] = size
    return caches


def _gpu() -> str | None:
    """Return the name and driver version of the first GPU from `nvidia-smi`, or None."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None
