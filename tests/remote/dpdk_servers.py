"""Servers on DPDK's ports, for tests: without hugepages, devices or privileges."""

import pytest

from accel_rl.remote.module import native

ENVIRONMENT = ["--no-huge", "--no-pci", "-m", "256"]


def require_dpdk():
    """Skips where there is no server, or it was built without DPDK."""
    try:
        why = native().describe_dpdk()["why"]
    except ImportError as error:
        why = str(error)
    if why:
        pytest.skip(f"NOT TESTED over DPDK: {why}")


def memif(path, clients=1):
    """Arguments of a server with so many interfaces of one memif socket."""
    devices = [
        f"--vdev=net_memif{each},role=server,socket={path},socket-abstract=no,id={each}"
        for each in range(clients)
    ]
    return {"host": None, "dpdk": ENVIRONMENT + devices, "idle": "yield"}
