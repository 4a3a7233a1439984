"""The server at DPDK's ports in the kernel's networks: its clients use the kernel's sockets."""

import contextlib
import os
import socket
import struct
from pathlib import Path

import dpdk_servers
import numpy as np
import pytest
from optional import require

from accel_rl import remote
from accel_rl.remote.module import native
from accel_rl.remote.namespaces import Namespaces

ETH_P_ALL = 3
SECRET = b"what both sides know"
SPEC = remote.TableSpec("steps", 100, [remote.Column("frame", "u1", (3000,))])
ITEMS = np.arange(60 * 3000, dtype=np.uint32).astype(np.uint8).reshape(60, 3000)


@pytest.fixture
def network():
    dpdk_servers.require_dpdk()
    require("network namespaces")
    with Namespaces() as made:
        made.add("first")
        yield made


@contextlib.contextmanager
def serving(network, name, **arguments):
    """Address of a server in a namespace."""
    with network.entered(name):
        server = remote.ReplayServerProcess(**arguments, secret=SECRET)
    with server:
        yield server.address


def ports(driver, *devices, address="10.9.0.2"):
    """Arguments of a server at devices of the kernel's."""
    given = [f"--vdev=net_{driver}{k},iface={device}" for k, device in enumerate(devices)]
    return {
        "host": None,
        "dpdk": dpdk_servers.ENVIRONMENT + given,
        "dpdk_address": address,
        "idle": "yield",
    }


def push(address):
    with remote.ReplayClient(address, SECRET, timeout=20.0) as client:
        client.table(SPEC).push({"frame": ITEMS})


def sample(address):
    with remote.ReplayClient(address, SECRET, timeout=20.0) as client:
        drawn = client.table(SPEC).sample(5, 40)
        np.testing.assert_array_equal(drawn.columns["frame"], ITEMS[drawn.slots])
        return drawn.slots.copy()


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ping(address):
    """Whether the kernel takes what comes back for the answer to an echo request."""
    if ":" in address:
        return ping_ipv6(address)
    echo = struct.pack(">BBHHH", 8, 0, 0, 77, 1) + b"accel_rl"
    echo = echo[:2] + struct.pack(">H", checksum(echo)) + echo[4:]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(10.0)
        raw.sendto(echo, (address, 0))
        while True:
            answer = raw.recv(1500)[20:]
            if answer[0] == 0:
                return answer[4:] == echo[4:] and checksum(answer) == 0


def ping_ipv6(address):
    """Echo over ICMPv6, whose checksums the kernel makes and checks."""
    echo = struct.pack(">BBHHH", 128, 0, 0, 77, 1) + b"accel_rl"
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as raw:
        raw.settimeout(10.0)
        raw.sendto(echo, (address, 0))
        while True:
            answer = raw.recv(1500)
            if answer[0] == 129:
                return answer[4:] == echo[4:]


@pytest.mark.parametrize("prefix", ["10.9.0.", "fd00:9::"])
@pytest.mark.parametrize("driver", ["af_packet", "af_xdp"])
def test_clients_of_the_kernel(network, serve, driver, prefix):
    folder = Path(native().describe_dpdk()["drivers"])
    if not list(folder.glob(f"librte_net_{driver}.so*")):
        pytest.skip(f"NOT TESTED: DPDK was built without {driver}")
    network.add("server")
    network.cable("first", "client", f"{prefix}1/24", "server", "port")
    with serving(network, "server", **ports(driver, "port", address=f"{prefix}2")) as address:
        assert address in ("udp://10.9.0.2:7077", "udp://[fd00:9::2]:7077")
        with network.entered("first"):
            assert ping(f"{prefix}2")
            push(address)
            slots = sample(address)
            with pytest.raises(remote.AuthenticationFailed):
                remote.ReplayClient(address)
    # The same seed draws the same over TCP.
    with remote.ReplayClient(serve().address) as client:
        client.table(SPEC).push({"frame": ITEMS})
        np.testing.assert_array_equal(client.table(SPEC).sample(5, 40).slots, slots)


@contextlib.contextmanager
def watched(device):
    """The largest packets that come to and leave a device during the block, in bytes of IP."""
    largest = [0, 0]
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        raw.bind((device, ETH_P_ALL))
        yield largest
        raw.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, (_, _, kind, _, _) = raw.recvfrom(1 << 16)
                leaves = kind == socket.PACKET_OUTGOING
                largest[leaves] = max(largest[leaves], len(packet))


@pytest.mark.parametrize("server", ["DPDK", "sockets"])
@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize("prefix", ["10.9.0.", "fd00:9::"])
def test_mtu(network, prefix, mtu, server):
    """Both sides fill the packets that the MTU allows."""
    network.add("server")
    here, there = f"{prefix}1", f"{prefix}2"
    own = None if server == "DPDK" else f"{there}/24"
    network.cable("first", "client", f"{here}/24", "server", "port", own, mtu=mtu)
    if server == "DPDK":
        arguments = ports("af_packet", "port", address=there) | {"dpdk_mtu": mtu}
    else:
        arguments = {"host": there, "port": 7077, "udp_port": 7077}
    with serving(network, "server", **arguments) as address, network.entered("first"):
        address = address.replace("tcp", "udp")
        with watched("client") as largest:
            push(address)
            sample(address)
        assert largest == [mtu, mtu]


def test_refused_mtu(network):
    network.add("server")
    network.cable("first", "client", "10.9.0.1/24", "server", "port")
    arguments = ports("af_packet", "port") | {"dpdk_mtu": 9000}
    refused = pytest.raises(RuntimeError, match=r"dpdk_mtu must be at most 1500, .*got 9000")
    with refused, serving(network, "server", **arguments):
        pass


def bound(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    each = socket.socket(family, socket.SOCK_DGRAM)
    each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    each.bind((address, 5000))
    each.settimeout(10.0)
    return each


@pytest.mark.parametrize("prefix", ["10.9.0.", "fd00:9::"])
def test_in_network(network, prefix):
    """Actor, server and learner in a row: the server stands in the path between the others."""
    network.add("middle", "learner")
    here, server, there = (f"{prefix}{each}" for each in (1, 2, 3))
    network.cable("first", "actor", f"{here}/24", "middle", "left")
    network.cable("learner", "learner", f"{there}/24", "middle", "right")
    in_path = ports("af_packet", "left", "right", address=server) | {"in_network": True}
    with serving(network, "middle", **in_path) as address:
        with network.entered("first"):
            actor = bound(here)
        with network.entered("learner"):
            learner = bound(there)
        with actor, learner:
            sent = [os.urandom(1 + 7 * each) for each in range(200)]
            for first in range(0, len(sent), 20):
                burst = sent[first : first + 20]
                for each in burst:
                    actor.sendto(each, (there, 5000))
                # The kernel may change their order, as a core or an answer to ARP comes between.
                assert sorted(learner.recv(2000) for _ in burst) == sorted(burst)
            learner.sendto(b"and back", (here, 5000))
            assert actor.recv(2000) == b"and back"
        with network.entered("first"):
            assert ping(server)
            assert ping(there)
            push(address)
        with network.entered("learner"):
            assert ping(server)
            sample(address)
