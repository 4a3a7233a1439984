"""TLS between client and server: who is trusted, what is refused, and frames of every size."""

import socket
import ssl

import numpy as np
import pytest
from optional import require
from processes import LIMIT

from accel_rl import remote
from accel_rl.remote import Column, TableSpec, wire
from accel_rl.remote.links import parse_address

trustme = pytest.importorskip("trustme")
SECRET = b"0123456789abcdef"
SPEC = TableSpec("t", 4096, (Column("x", "f4", (1024,)),), "uniform")


@pytest.fixture(scope="module")
def authority(built):
    require("TLS")
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority, tmp_path_factory):
    """A certificate of 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    issued = authority.issue_cert("127.0.0.1", "localhost")
    for pem in issued.cert_chain_pems:
        pem.write_to_path(certificate, append=True)
    issued.private_key_pem.write_to_path(key)
    return {"tls_certificate": certificate, "tls_key": key}


@pytest.fixture(scope="module")
def trusting(authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def receive(raw, count):
    data = bytearray()
    while len(data) < count:
        data += raw.recv(min(count - len(data), 1 << 16)) or pytest.fail("closed too early")
    return data


def test_large_and_small_frames(serve, connect, files, trusting):
    server = serve(**files, secret=SECRET)
    assert server.address.startswith("tls://127.0.0.1:")
    client = connect(server.address, SECRET, tls=trusting)
    assert client.ping(b"x" * 100) == b"x" * 100
    table = client.table(SPEC)
    rows = np.random.default_rng(0).random((3072, 1024), np.float32)
    table.push({"x": rows})  # 12 MiB, in 768 records
    drawn = table.sample(1, 3000)
    np.testing.assert_array_equal(drawn.columns["x"], rows[drawn.slots])
    assert client.ping(b"y") == b"y"


def test_a_server_without_tls(serve, connect):
    server = serve()
    with pytest.raises(remote.ConnectionLost, match=f"does it speak TLS.* {server.address}"):
        connect(server.address.replace("tcp:", "tls:"))


def test_the_same_batch_as_without(serve, connect, files, trusting):
    plain, tls = serve(), serve(**files)
    rows = np.random.default_rng(0).random((300, 1024), np.float32)
    drawn = []
    for client in (connect(plain.address), connect(tls.address, tls=trusting)):
        table = client.table(SPEC)
        table.push({"x": rows})
        drawn.append(table.sample(7, 64))
    np.testing.assert_array_equal(drawn[0].slots, drawn[1].slots)
    np.testing.assert_array_equal(drawn[0].columns["x"], drawn[1].columns["x"])


def test_requests_that_wait_inside_a_record(serve, connect, files, trusting):
    """The server stops reading when replies wait; what TLS has decrypted then is not forgotten."""
    server = serve(**files)
    where = parse_address(server.address)
    table = connect(server.address, tls=trusting).table(SPEC)
    table.push({"x": np.ones((64, 1024), np.float32)})
    with trusting.wrap_socket(
        socket.create_connection((where.host, where.port), LIMIT), server_hostname=where.host
    ) as raw:
        raw.settimeout(LIMIT)
        raw.sendall(wire.request_frame(wire.Op.HELLO, fixed=bytes(24)))
        session = wire.read_header(raw.recv(64), 64).session
        ping = wire.request_frame(wire.Op.PING, session=session, sections=(bytes(64_000 - 64),))
        asks = b"".join(
            wire.request_frame(
                wire.Op.SAMPLE, session=session, request=1 + n, table=0,
                fixed=np.array([n, 64], "<u8").tobytes(),
            )
            for n in range(150)
        )  # fmt: skip
        # The rest of the ping shares a record with samples, of which a buffer of 64 KiB takes a
        # part, and the reply to the first is more than the server keeps before it stops.
        raw.sendall(ping[:60_000])
        raw.sendall(ping[60_000:] + asks)
        assert receive(raw, 64_000)[:4] == b"ARLR"
        size = wire.read_header(first := receive(raw, 64), 1 << 20).length
        assert len(receive(raw, 150 * size - len(first))) == 150 * size - 64


def test_who_is_not_trusted(serve, connect, files, trusting):
    server = serve(**files)
    with pytest.raises(remote.ConnectionLost, match="certificate verify failed"):
        connect(server.address, reconnect=0.0)
    elsewhere = ssl.create_default_context()
    trustme.CA().configure_trust(elsewhere)
    with pytest.raises(remote.ConnectionLost, match="certificate verify failed"):
        connect(server.address, tls=elsewhere)
    named = server.address.replace("127.0.0.1", "127.0.0.2")
    with pytest.raises(remote.ConnectionLost):
        connect(named, tls=trusting)
    assert connect(server.address, tls=trusting).ping() == b""


def test_a_client_without_tls_is_let_go(serve, connect, files, trusting):
    server = serve(**files)
    with pytest.raises(remote.ConnectionLost):
        connect(server.address.replace("tls", "tcp"))
    with pytest.raises(remote.ConnectionLost):
        connect(serve().address.replace("tcp", "tls"), tls=trusting, timeout=1.0)
    assert connect(server.address, tls=trusting).ping() == b""


def test_an_older_version_is_refused(serve, files, trusting):
    where = parse_address(serve(**files).address)
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        pytest.raises(ssl.SSLError),
        socket.create_connection((where.host, where.port), LIMIT) as raw,
    ):
        old.wrap_socket(raw)


def test_a_silent_client_is_timed_out(serve, files):
    server = serve(**files, handshake_ms=300)
    where = parse_address(server.address)
    with socket.create_connection((where.host, where.port), LIMIT) as raw:
        raw.settimeout(LIMIT)
        assert raw.recv(1) == b""
    assert server.stats()["timed_out"] == 1


def test_a_restarted_server_is_found_again(serve, connect, files, trusting, tmp_path):
    first = serve(**files, snapshot_path=tmp_path / "snapshot")
    port = parse_address(first.address).port
    client = connect(first.address, tls=trusting)
    client.table(SPEC).push({"x": np.ones((10, 1024), np.float32)})
    first.snapshot()
    first.close()
    serve(**files, port=port, snapshot_path=tmp_path / "snapshot")
    assert client.table("t").stats()["size"] == 10


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tls_key": None}, "given together"),
        ({"host": None, "unix_path": "x"}, "given together"),
        ({"tls_certificate": "/nonexistent"}, "certificate /nonexistent"),
        ({"tls_key": "certificate"}, "key"),
    ],
)
def test_bad_files(serve, files, given, message):
    arguments = files | given
    if arguments["tls_key"] == "certificate":
        arguments["tls_key"] = files["tls_certificate"]
    with pytest.raises(ValueError, match=message):
        serve(**arguments)
