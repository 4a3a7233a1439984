"""Servers on DPDK's ports, for tests: without hugepages, devices or privileges."""

from optional import require

ENVIRONMENT = ["--no-huge", "--no-pci", "-m", "256"]


def require_dpdk():
    """Skips where there is no server, or it was built without DPDK."""
    require("DPDK")


def memif(path, clients=1):
    """Arguments of a server with so many interfaces of one memif socket."""
    devices = [
        f"--vdev=net_memif{each},role=server,socket={path},socket-abstract=no,id={each}"
        for each in range(clients)
    ]
    return {"host": None, "dpdk": ENVIRONMENT + devices, "idle": "yield"}
