"""Optional parts: features that need other software, and how to install it.

`accel-rl doctor` and the end of a test run describe absent parts in the same words.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

_REINSTALL = "then reinstall accel_rl"


class Part(NamedTuple):
    """Optional part.

    Attributes:
      purpose: features that need the part.
      package: how to install it, as a command or a noun phrase.
      why_absent: returns the reason of its absence, or None if it is present.
    """

    purpose: str
    package: str
    why_absent: Callable[[], str | None]


def _programs(*names: str) -> Callable[[], str | None]:
    """Return a check that programs are on PATH."""

    def why_absent() -> str | None:
        missing = [name for name in names if shutil.which(name) is None]
        return f"not on PATH: {', '.join(missing)}" if missing else None

    return why_absent


def _modules(*names: str) -> Callable[[], str | None]:
    """Return a check that Python modules are installed, without importing them."""

    def why_absent() -> str | None:
        missing = [name for name in names if importlib.util.find_spec(name) is None]
        return f"not installed: {', '.join(missing)}" if missing else None

    return why_absent


def _native_kernels() -> str | None:
    from accel_rl import native

    return native.why_absent()


def _dpu_programs() -> str | None:
    from accel_rl.pim.upmem import sdk

    return sdk.why_no_emulator()


def _dpu_match_programs() -> str | None:
    return _dpu_programs() or _programs("g++")()


def _real_dpus() -> str | None:
    from accel_rl.pim.upmem import sdk

    found = sdk.find_sdk()
    if not found.found:
        return f"UPMEM SDK not found: {found.why}"
    return None if sdk.count_ranks(sdk.DEVICES) else f"no rank: there is no {sdk.DEVICES}/dpu_rank0"


def _of_server(why_absent: Callable[[Any], str]) -> Callable[[], str | None]:
    """Return a check that queries the replay server's module."""

    def asked() -> str | None:
        from accel_rl.remote.module import native

        try:
            return why_absent(native()) or None
        except ImportError as error:
            return str(error)

    return asked


def _why_no_dpdk(module: Any) -> str:
    cores = "/sys/devices/system/cpu"
    if os.path.isdir(cores):
        return module.describe_dpdk()["why"]
    return f"no {cores}, where DPDK looks for cores: mount /sys"


def _network_namespaces() -> str | None:
    from accel_rl.remote import namespaces

    return namespaces.why_absent()


PARTS: dict[str, Part] = {
    "native kernels": Part(
        "tabular training and sum trees in C",
        f"apt-get install gcc libc6-dev, {_REINSTALL}",
        _native_kernels,
    ),
    "DPU programs": Part(
        "UPMEM backend on the emulator",
        "apt-get install gcc libc6-dev, on x86-64 Linux",
        _dpu_programs,
    ),
    "DPU match programs": Part(
        "associative search on DPUs", "apt-get install gcc g++", _dpu_match_programs
    ),
    "real DPUs": Part("UPMEM backend on hardware", "UPMEM's SDK and hardware", _real_dpus),
    "replay server": Part(
        "replay over a network, Ape-X",
        f"apt-get install g++ python3-dev, {_REINSTALL}",
        _of_server(lambda module: ""),
    ),
    "TLS": Part(
        "secrets and TLS of the replay server",
        f"apt-get install libssl-dev, {_REINSTALL}",
        _of_server(lambda module: module.why_no_crypto()),
    ),
    "shared memory": Part(
        "clients on the replay server's machine",
        "Linux 4.14 or newer",
        _of_server(lambda module: module.why_no_shm()),
    ),
    "DPDK": Part(
        "replay server without the kernel's sockets",
        f"apt-get install dpdk-dev pkg-config, {_REINSTALL}",
        _of_server(_why_no_dpdk),
    ),
    "network namespaces": Part(
        "Ape-X with the replay server in the path between two networks",
        "root, and apt-get install iproute2",
        _network_namespaces,
    ),
    "RTL simulation": Part(
        "tests of kernels/rtl",
        "apt-get install verilator make g++",
        _programs("verilator", "make", "g++"),
    ),
    "Chromium": Part(
        "tests of report pages in a browser", "apt-get install chromium", _programs("chromium")
    ),
    "gdb": Part("tests of debugging DPU programs", "apt-get install gdb", _programs("gdb")),
    "git": Part("benchmark records that name a commit", "apt-get install git", _programs("git")),
    "Minari": Part("import of Minari datasets", "the extra minari", _modules("minari", "h5py")),
    "brax": Part("environments of brax", "the extra brax", _modules("brax")),
    "Craftax": Part("environments of Craftax", "the extra craftax", _modules("craftax")),
    "Jumanji": Part("environments of Jumanji", "the extra jumanji", _modules("jumanji")),
    "Atari": Part("Atari games", "the extra atari", _modules("ale_py", "cv2")),
    "MuJoCo": Part("HalfCheetah and others", "the extra mujoco", _modules("mujoco", "imageio")),
    "Box2D": Part("LunarLander", "the extra box2d", _modules("Box2D")),
    "TensorBoard": Part(
        "metrics for TensorBoard", "the extra tensorboard", _modules("tensorboardX")
    ),
    "Weights & Biases": Part("metrics for wandb", "the extra wandb", _modules("wandb")),
    "Ray": Part("Ape-X actors on a Ray cluster", "the extra ray", _modules("ray")),
    "Jupyter": Part("notebooks", "the extra notebook", _modules("nbclient", "ipykernel")),
    "rivals": Part(
        "benchmarks beside flashbax, cpprb, pyzmq and Redis",
        "the extra benchmark",
        _modules("flashbax", "cpprb", "zmq", "redis"),
    ),
}


def describe_absence(name: str) -> str | None:
    """Return one line that names an absent part and how to install it; None if present."""
    part = PARTS[name]
    return f"{name}: absent: {part.package}" if part.why_absent() else None
