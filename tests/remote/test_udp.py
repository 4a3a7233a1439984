"""Clients of datagrams, over networks that lose them, and over none at all."""

import socket
import struct

import numpy as np
import processes
import pytest
from bad_network import BadNetwork
from checksums import checked
from hypothesis import settings
from test_server_machine import ServerMachine

from accel_rl import remote
from accel_rl.remote import Column, TableSpec, wire
from accel_rl.remote.links import parse_address
from accel_rl.remote.module import native
from accel_rl.remote.wire import Op

pytestmark = pytest.mark.usefixtures("built")
SECRET = b"0123456789abcdef"
SPEC = TableSpec("t", 4096, (Column("x", "f4", (40,)), Column("n", "i4")))
BAD = {"lost": 0.05, "doubled": 0.05, "delayed": 0.1}


def items(count, first):
    numbers = np.arange(first, first + count, dtype=np.int32)
    return {"x": np.repeat(numbers.astype(np.float32)[:, None], 40, 1), "n": numbers}


class BadMachine(ServerMachine):
    network = None

    def listening(self, path):
        return {"udp_port": 0}

    def where(self):
        if self.network is not None:
            self.network.close()
        self.network = BadNetwork(self.server.addresses[1], 1, **BAD)
        return self.network.address

    def teardown(self):
        super().teardown()
        self.network.close()


TestBad = BadMachine.TestCase
TestBad.settings = settings(max_examples=5, stateful_step_count=20, deadline=None)


def test_a_bad_network_changes_nothing(serve, connect):
    server = serve(udp_port=0)
    with BadNetwork(server.addresses[1], 3, **BAD) as network:
        by_tcp, by_udp = connect(server.address), connect(network.address)
        table, same = by_udp.table(SPEC), by_tcp.table("t")
        for number in range(40):
            count = 2000 if number % 10 == 9 else 5  # 11 datagrams, or one
            table.push(items(count, number), np.linspace(1, 2, count))
            drawn, right = table.sample(number, 64), same.sample(number, 64)
            np.testing.assert_array_equal(drawn.slots, right.slots)
            np.testing.assert_array_equal(drawn.probabilities, right.probabilities)
            for name, column in right.columns.items():
                np.testing.assert_array_equal(drawn.columns[name], column)
            table.update(drawn, np.full(64, 0.5 + number, np.float32))
        stats = same.stats()
        assert min(network.lost, network.doubled, network.delayed) > 0
    counts = server.stats()["datagrams"]
    assert counts["in"] >= 4 * 11 + 36 + 2 * 40
    assert min(counts["out"], counts["duplicates"], counts["retransmitted"]) > 0
    assert counts["malformed"] == counts["evicted"] == 0
    assert stats["inserts"] == 4 * 2000 + 36 * 5
    assert stats["samples"] == 2 * 40 * 64
    assert stats["updates"] + stats["stale"] == 40 * 64


def test_a_network_that_dies(serve, connect):
    server = serve(udp_port=0)
    with BadNetwork(server.addresses[1], 3) as network:
        client = connect(network.address, reconnect=0.0)
        table = client.table(SPEC)
        table.push(items(5, 0))
        network.dead, patient = True, client._timeout
        client._timeout = 0.3
        with pytest.raises(remote.OutcomeUnknown):
            table.push(items(5, 5))
        with pytest.raises(remote.ConnectionLost):
            client.ping()
        network.dead, client._timeout = False, patient
        assert client.ping(b"again") == b"again"


def test_a_client_whose_address_changes(serve, connect):
    server = serve(udp_port=0)
    with BadNetwork(server.addresses[1], 3) as network:
        table = connect(network.address).table(SPEC)
        for number in range(5):
            table.push(items(5, number))
            network.move()
        assert table.stats()["inserts"] == 25
    assert server.stats()["connections"] == 1


def test_a_server_that_starts_again(serve, connect, tmp_path):
    path = tmp_path / "snapshot"
    server = serve(udp_port=0, snapshot_path=path)
    address = server.addresses[1]
    port = parse_address(address).port
    client = connect(address)
    table = client.table(SPEC)
    table.push(items(50, 0))
    client.snapshot()
    server.close()
    serve(udp_port=port, snapshot_path=path)
    assert table.stats()["size"] == 50  # the client has found it
    assert table.push(items(5, 50)) == 55


def test_secrets_by_datagrams(serve, connect):
    server = serve(udp_port=0, secret=SECRET)
    with BadNetwork(server.addresses[1], 3, lost=0.2, doubled=0.2) as network:
        for wrong in (None, SECRET[::-1]):
            with pytest.raises(remote.AuthenticationFailed):
                connect(network.address, wrong)
        assert connect(network.address, SECRET).ping(b"x") == b"x"
    assert server.stats()["unauthenticated"] == 1


def test_frames_of_any_size(serve, connect):
    server = serve(udp_port=0)
    client = connect(server.addresses[1])
    whole = bytes(range(256)) * 4096
    for size in (1, 1343, 1344, 1345, 32_703, 32_704, 32_705, 100_000, 1 << 20):
        assert client.ping(whole[:size]) == whole[:size]
    assert server.stats()["malformed"] == 0


def test_garbage_is_counted(serve, connect):
    server = serve(udp_port=0)
    client = connect(server.addresses[1])
    where = parse_address(server.addresses[1])
    ping = checked(wire.request_frame(Op.PING, session=client._session, request=1))
    damaged = bytearray(ping)
    damaged[50] ^= 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.connect((where.host, where.port))
        raw.settimeout(20)
        for garbage in (b"", b"ARLR", bytes(64), bytes(60_000), damaged, ping[:-1]):
            raw.send(garbage)
        # A token that nobody has is answered, so that its client need not wait.
        raw.send(checked(wire.request_frame(Op.PING, session=1, request=7)))
        header = wire.read_header(raw.recv(64), 64)
        assert (header.op, header.session, header.request) == (16, 1, 7)
    assert client.ping(b"still") == b"still"
    stats = server.stats()
    assert stats["malformed"] == stats["datagrams"]["malformed"] == 6
    assert stats["datagrams"]["resets"] == 1
    assert stats["datagrams"]["bad_checksums"] > 0


def test_fragments_that_never_become_whole(serve, connect):
    server = serve(udp_port=0, frame_ms=300)
    client = connect(server.addresses[1])
    where = parse_address(server.addresses[1])
    head = wire.request_frame(Op.PUSH, session=client._session, request=50, table=0)
    struct.pack_into("<HHI", head, 28, 0, 11_000, 40 + 11_000 * 1400)
    datagram = checked(head[:40] + bytes(1400))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.connect((where.host, where.port))
        raw.send(datagram)
        processes.wait_until(lambda: server.stats()["timed_out"])


def test_a_server_that_never_began():
    module = native()
    server = module.Server(module.ServerSettings(), None)
    server.listen_udp("127.0.0.1", 0)
    link = server.open_link()
    server.stop()
    with pytest.raises(ConnectionRefusedError, match="the server is closed"):
        server.open_link()
    with pytest.raises(ConnectionResetError):
        link.exchange([wire.request_frame(Op.HELLO)], bytearray(4096), 0)
    assert server.stats()["open"] == server.stats()["datagrams"]["in"] == 0


def test_addresses(serve, connect):
    server = serve(host="::1", udp_port=0)
    assert server.addresses[1].startswith("udp://[::1]:")
    for way in ("", "?busy=0", "?busy=1"):
        assert connect(server.addresses[1] + way).ping(b"six") == b"six"
    with pytest.raises(ValueError, match="udp knows busy"):
        connect(server.addresses[1] + "?idle=1")
    with remote.ReplayServerProcess(udp_port=0) as process:
        assert connect(process.addresses[1]).ping(b"four") == b"four"
    with pytest.raises(remote.ConnectionLost):
        connect(process.addresses[1])
    with pytest.raises(remote.ConnectionLost, match="no-such-host"):
        connect("udp://no-such-host.invalid:1")
    with pytest.raises(ValueError, match="must have a secret"):
        serve(host="0.0.0.0", udp_port=0)
    with pytest.raises(ValueError, match="udp_port 5"):
        serve(host=None, udp_port=5)
    taken = parse_address(server.addresses[1]).port
    with pytest.raises(ValueError, match=f"cannot receive on ::1 port {taken}"):
        serve(host="::1", udp_port=taken)


def test_round_trips_by_datagrams(serve):
    server = serve(udp_port=0)
    assert (remote.probe(server.addresses[1], rounds=200) > 0).all()
    assert server.stats()["requests"] == 203
