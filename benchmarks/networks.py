"""Networks of the kernel's own on one machine: namespaces with cables between them."""

import base64
import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading

SECRET = b"what both sides know"
_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """Namespaces by name, and threads and servers within them.

    Attributes:
      processes: of servers, by the namespace.
    """

    def __init__(self):
        """Empty; takes root, and `ip` of iproute2."""
        self.processes = {}
        self._prefix = f"accel-rl-{os.getpid()}-"

    def add(self, *names):
        """Make namespaces."""
        for name in names:
            _ip("netns", "add", self._prefix + name)
            _ip("-n", self._prefix + name, "link", "set", "lo", "up")

    def close(self):
        """End all of them, and what is within."""
        for line in subprocess.check_output(["ip", "netns", "list"], text=True).splitlines():
            if (name := line.split()[0]).startswith(self._prefix):
                _ip("netns", "del", name)

    def cable(self, name, device, address, other, other_device, other_address=None):
        """End in two namespaces; one without an address is DPDK's."""
        there = ("peer", "name", other_device, "netns", self._prefix + other)
        _ip("-n", self._prefix + name, "link", "add", device, "type", "veth", *there)
        ends = ((name, device, address), (other, other_device, other_address))
        for name, device, address in ends:
            # What passes through DPDK's ports has its checksums, or nobody would put them in.
            self.within(name, _no_checksums_left_out, device)
            if address:
                _ip("-n", self._prefix + name, "addr", "add", address, "dev", device)
            _ip("-n", self._prefix + name, "link", "set", device, "up")

    def within(self, name, function, *arguments):
        """Call a function in a thread whose sockets are in a network namespace."""
        answer = []

        def run():
            with open(f"/run/netns/{self._prefix}{name}") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    answer.append(OSError(ctypes.get_errno(), "setns"))
                    return
            try:
                answer.append(function(*arguments))
            except BaseException as error:
                answer.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if isinstance(answer[0], BaseException):
            raise answer[0]
        return answer[0]

    @contextlib.contextmanager
    def server(self, name, **arguments):
        """Return a server in a namespace, in a process of its own; gives its addresses."""
        arguments["secret"] = base64.b64encode(SECRET).decode()
        program = "from accel_rl.remote.process import main; main()"
        with subprocess.Popen(
            ["ip", "netns", "exec", self._prefix + name, sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            process.stdin.write(json.dumps(arguments) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "error" not in answer, answer
            self.processes[name] = process
            yield answer["addresses"]
            process.stdin.close()
            process.wait(20)


def _no_checksums_left_out(device):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        value = ctypes.create_string_buffer(struct.pack("II", _ETHTOOL_STXCSUM, 0))
        request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
