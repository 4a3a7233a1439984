"""Networks of the kernel's own on one machine: namespaces with cables between them."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence

from accel_rl.remote.closing import Closing

_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17
_OWN = "/proc/thread-self/ns/net"


def why_absent() -> str | None:
    """Return why this process cannot make network namespaces, or None if it can."""
    if os.geteuid() != 0:
        return "takes root"
    if shutil.which("ip") is None:
        return "not on PATH: ip"
    try:
        with Namespaces() as made:
            made.add("tried")
    except (OSError, RuntimeError) as error:
        return f"refused by the kernel: {error}"
    return None


class Namespaces(Closing):
    """Network namespaces by name, joined by pairs of virtual Ethernet devices (veth).

    The names are known to this object only. A namespace has no file: a descriptor of this process
    and the processes within keep it. The kernel removes it and its devices once these are gone,
    however they end. Takes root, and `ip` of iproute2.
    """

    def __init__(self) -> None:
        """Begin with no namespace."""
        self._files: dict[str, int] = {}

    def add(self, *names: str) -> None:
        """Make namespaces, with a loopback device each."""
        for name in names:
            with _returning():
                _check(_libc().unshare(_CLONE_NEWNET))
                self._files[name] = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
            self._ip(name, "link", "set", "lo", "up")

    def close(self) -> None:
        """Let go of the namespaces; each lives on while a process is within. Idempotent."""
        while self._files:
            os.close(self._files.popitem()[1])

    @contextlib.contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Move the calling thread into a namespace for the block.

        Sockets, threads and processes that the block makes stay there. Other threads stay where
        they are.
        """
        with _returning():
            _check(_libc().setns(self._files[name], _CLONE_NEWNET))
            yield

    def cable(
        self,
        name: str,
        device: str,
        address: str | None,
        other: str,
        other_device: str,
        other_address: str | None = None,
        *,
        mtu: int = 1500,
    ) -> None:
        """Join two namespaces by a pair of devices; one without an address is for DPDK."""
        there = f"/proc/{os.getpid()}/fd/{self._files[other]}"
        peer = ("peer", "name", other_device, "netns", there)
        self._ip(name, "link", "add", "name", device, "type", "veth", *peer)
        ends = ((name, device, address), (other, other_device, other_address))
        for where, end, given in ends:
            # DPDK forwards packets as they come: the kernel must have made their checksums.
            with self.entered(where):
                _make_checksums(end)
            if given:
                # Nobody else has it: an IPv6 address need not wait for duplicates to be detected.
                unique = ("nodad",) if ":" in given else ()
                self._ip(where, "addr", "add", given, "dev", end, *unique)
            self._ip(where, "link", "set", end, "mtu", str(mtu), "up")

    def switch(self, name: str, devices: Sequence[str]) -> None:
        """Join devices of a namespace by the kernel's Ethernet switch."""
        self._ip(name, "link", "add", "switch", "type", "bridge")
        for device in devices:
            self._ip(name, "link", "set", device, "master", "switch")
        self._ip(name, "link", "set", "switch", "up")

    def _ip(self, name: str, *words: str) -> None:
        with self.entered(name):
            done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def _returning() -> Iterator[None]:
    """Bring the calling thread back to its present namespace after the block."""
    before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _check(_libc().setns(before, _CLONE_NEWNET))
        finally:
            os.close(before)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"network namespace: {os.strerror(number)}")


def _make_checksums(device: str) -> None:
    """Have the kernel fill in the checksums of packets that a device sends (`ethtool tx off`)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        value = ctypes.create_string_buffer(struct.pack("II", _ETHTOOL_STXCSUM, 0))
        request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
