"""DPDK transports of this machine, for `accel-rl doctor`."""

import os
from pathlib import Path

from accel_rl.io.values import Json

_DRIVERS = {
    "memif": "memif",
    "vhost": "vhost",
    "virtio": "virtio_user",
    "af_packet": "af_packet",
    "af_xdp": "af_xdp",
}
_NEEDS_ROOT = ("af_packet", "af_xdp")


def dpdk_transports() -> list[dict[str, Json]]:
    """List the transports over DPDK, present or absent, with the reason."""
    from accel_rl.remote.module import native

    try:
        found = native().describe_dpdk()
    except ImportError as error:
        found = {"version": "", "drivers": "", "why": str(error)}
    if found["why"]:
        return [{"name": name, "present": False, "why": found["why"]} for name in ("dpdk", "memif")]
    drivers = [
        called
        for name, called in _DRIVERS.items()
        if list(Path(found["drivers"]).glob(f"librte_net_{name}.so*"))
    ]
    root = os.geteuid() == 0
    parts = [
        f"{found['version']}, with {', '.join(drivers) or 'none of our drivers'}",
        f"{_hugepages()} hugepages (only real devices need them)",
        f"{'' if root else 'no '}root, which {' and '.join(_NEEDS_ROOT)} take",
    ]
    memif = "shared memory with programs on DPDK, without privileges or hugepages"
    if "memif" not in drivers:
        memif = f"{found['version']} has no memif driver in {found['drivers']}"
    return [
        {"name": "dpdk", "present": True, "why": "; ".join(parts)},
        {"name": "memif", "present": "memif" in drivers, "why": memif},
    ]


def _hugepages() -> int:
    """Count hugepages of all sizes, free or in use; 0 where the kernel does not list them."""
    try:
        return sum(
            int(path.read_text())
            for path in Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
        )
    except OSError:
        return 0
