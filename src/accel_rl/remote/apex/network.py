"""Network of an Ape-X training on one machine: actors on one side, the learner on the other.

The paper's experiment (Furukawa and Matsutani, PDP 2022): the replay server stands in the path
between actors and learner, or behind the switch that joins them.
"""

import contextlib
import enum
import secrets
from typing import Any

from accel_rl.remote.closing import Closing
from accel_rl.remote.namespaces import Namespaces
from accel_rl.remote.process import ReplayServerProcess

_ACTORS, _LEARNER, _MIDDLE, _BEHIND = "actors", "learner", "middle", "behind"
_SERVER, _PORT = "10.77.0.2", 7077
_DPDK = ("--no-huge", "--no-pci", "-m", "256")


class ServerPlacement(enum.StrEnum):
    """Place and network stack of the replay server in a training's network."""

    IN_PATH = "in-path"
    """DPDK, with a port to the actors and one to the learner; forwards what is for others."""
    BEYOND = "beyond"
    """DPDK, one hop further: behind a switch of the kernel that joins actors and learner."""
    SOCKETS = "sockets"
    """The kernel's UDP sockets, behind the same switch."""


class TrainingNetwork(Closing):
    """Namespaces for actors, learner and replay server, and the server within.

    All clients use the kernel's UDP, so placements differ in the server only.

    Args:
      placement: of the server.
      secret: shared secret; a new one if None.

    Attributes:
      address: of the server, for actors and learner.
      secret: shared secret of server and clients.
      server: process of the server.

    Raises:
      OSError, RuntimeError: if this process may not make namespaces, or the server does not start.
    """

    def __init__(self, placement: ServerPlacement | str, *, secret: bytes | None = None) -> None:
        """Make the network and start the server."""
        placement = ServerPlacement(placement)
        self.secret = secrets.token_bytes(32) if secret is None else secret
        with contextlib.ExitStack() as stack:
            self._namespaces = stack.enter_context(Namespaces())
            where = self._join(placement)
            with self._namespaces.entered(where):
                self.server = stack.enter_context(
                    ReplayServerProcess(**_arguments(placement), secret=self.secret)
                )
            self.address = self.server.addresses[-1]
            self._stack = stack.pop_all()

    def _join(self, placement: ServerPlacement) -> str:
        """Make namespaces and cables; return the namespace of the server."""
        made = self._namespaces
        made.add(_ACTORS, _LEARNER, _MIDDLE)
        made.cable(_ACTORS, "port", "10.77.0.1/24", _MIDDLE, "left")
        made.cable(_LEARNER, "port", "10.77.0.3/24", _MIDDLE, "right")
        if placement is ServerPlacement.IN_PATH:
            return _MIDDLE
        made.add(_BEHIND)
        # DPDK has the address itself; with the kernel's sockets the device has it.
        address = f"{_SERVER}/24" if placement is ServerPlacement.SOCKETS else None
        made.cable(_MIDDLE, "below", None, _BEHIND, "port", address)
        made.switch(_MIDDLE, ("left", "right", "below"))
        return _BEHIND

    def actors(self) -> contextlib.AbstractContextManager[None]:
        """Move the calling thread to the actors' side for a block; see `Namespaces.entered`."""
        return self._namespaces.entered(_ACTORS)

    def learner(self) -> contextlib.AbstractContextManager[None]:
        """Move the calling thread to the learner's side for a block."""
        return self._namespaces.entered(_LEARNER)

    def close(self) -> None:
        """End the server and let go of the namespaces. Idempotent."""
        self._stack.close()


def _arguments(placement: ServerPlacement) -> dict[str, Any]:
    """Return the arguments of the server."""
    if placement is ServerPlacement.SOCKETS:
        return {"host": _SERVER, "port": _PORT, "udp_port": _PORT}
    devices = ("left", "right") if placement is ServerPlacement.IN_PATH else ("port",)
    ports = [f"--vdev=net_af_packet{k},iface={device}" for k, device in enumerate(devices)]
    return {
        "host": None,
        "dpdk": [*_DPDK, *ports],
        "dpdk_address": _SERVER,
        "dpdk_port": _PORT,
        "in_network": placement is ServerPlacement.IN_PATH,
        "idle": "yield",
    }
