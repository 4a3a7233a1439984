"""Clients of all kinds that come and go, behind one server, for as long as one likes.

    python tests/remote/soak.py [SECONDS] [--pause SECONDS]

They push, sample, update, publish and fetch; end with or without saying so, in the middle of
frames, or leave replies unread; send nonsense; and have snapshots written. All the while the
server's memory and files must stay below what its settings allow, and in the end counts add up.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import socket
import struct
import tempfile
import threading
import time

import numpy as np
from raw_session import begin

from accel_rl import remote
from accel_rl.remote import Column, TableSpec, wire
from accel_rl.remote.wire import Op

MIB = 1 << 20
CLIENTS = 6  # at the same time
SPEC = TableSpec("soak", 20_000, (Column("x", "f4", (100,)), Column("n", "i4")))
TABLE_BYTES = SPEC.capacity * (
    404 + 32
)  # an item, and what is kept of it: weight, tree, generation
SETTINGS = {
    "mailbox_bytes": 4 * MIB,
    "buffer_bytes": 16 * MIB,
    "reply_bytes": 16 * MIB,
    "unread_bytes": 4 * MIB,
    "waiting_bytes": 4 * MIB,
    "sessions": 64,
    "connections": 64,
}
# A snapshot may keep a second copy of the table; what is freed, the allocator may keep for itself.
ALLOWED = 2 * TABLE_BYTES + sum(SETTINGS[n] for n in SETTINGS if n.endswith("bytes")) + 24 * MIB


@dataclasses.dataclass
class Counts:
    """What clients were told, over all of them."""

    inserts: int = 0
    samples: int = 0
    updates: int = 0
    asked: int = 0  # samples that were asked for, and whose replies nobody read
    clients: int = 0
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def add(self, **more):
        with self.lock:
            for name, value in more.items():
                setattr(self, name, getattr(self, name) + value)


@dataclasses.dataclass
class Found:
    """What the server looked like."""

    most_bytes: int  # of resident memory, above what it had at the beginning
    grown_bytes: int  # of the second half's mean over the first's
    most_files: int
    files_left: int  # above those of the beginning
    clients: int
    told: Counts
    server: dict
    table: dict


def push(client, rng, told):
    """Pushes, and leaves: politely, or as a process that is killed."""
    table = client.table(SPEC)
    for _ in range(rng.integers(1, 20)):
        count = int(rng.integers(1, 200))
        rows = [rng.random((count, 100), np.float32), np.arange(count, dtype=np.int32)]
        table.push(rows, rng.random(count, np.float32) if rng.random() < 0.5 else None, wait=5.0)
        told.add(inserts=count)


def learn(client, rng, told):
    table = client.table(SPEC)
    for _ in range(rng.integers(1, 20)):
        batch = int(rng.integers(1, 300))
        with contextlib.suppress(remote.TryAgain):
            sample = table.sample(int(rng.integers(1 << 62)), batch, wait=0.2)
            told.add(samples=batch)
            applied, stale = table.update(sample, rng.random(batch, np.float32))
            assert applied + stale == batch
            told.add(updates=applied)


def post(client, rng, told):
    name = f"name{threading.get_ident()}"
    found = client.fetch(name)
    client.publish(
        name, 0 if found is None else found[0] + 1, rng.bytes(int(rng.integers(1 << 18)))
    )
    assert client.fetch(name) is not None
    assert client.ping(b"there") == b"there"


def leave(connection, rng):
    """As a process does that is killed: its machine says so, or resets the connection."""
    if rng.random() < 0.5:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half(address, rng, told):
    """A push that ends in the middle of its frame."""
    connection, session = begin(address, 20.0)
    frame = wire.request_frame(
        Op.PUSH, session=session, request=1, table=0, fixed=struct.pack("<III", 4000, 0, 0),
        sections=(bytes(4000 * 400), bytes(4000 * 4)),
    )  # fmt: skip
    connection.sendall(frame[: int(rng.integers(1, len(frame)))])
    time.sleep(0.05 * rng.random())
    leave(connection, rng)


def unread(address, rng, told):
    """Many samples that nobody reads."""
    connection, session = begin(address, 20.0)
    connection.settimeout(0.2)
    for request in range(int(rng.integers(1, 100))):
        frame = wire.request_frame(
            Op.SAMPLE, session=session, request=request, table=0,
            fixed=struct.pack("<QII", request, 500, 0),
        )  # fmt: skip
        told.add(asked=500)
        with contextlib.suppress(OSError):
            connection.sendall(frame)
    leave(connection, rng)


def nonsense(address, rng, told):
    connection, _ = begin(address, 20.0)
    with contextlib.suppress(OSError):
        connection.sendall(rng.bytes(int(rng.integers(1, 5000))))
    leave(connection, rng)


def come_and_go(address, seed, going, told, pause):
    """One client after the other, with pauses, each of a kind drawn at random."""
    rng = np.random.default_rng(seed)
    while going():
        time.sleep(pause)
        told.add(clients=1)
        kind = (push, learn, push, learn, post, half, unread, nonsense)[rng.integers(8)]
        if kind in (half, unread, nonsense):
            with contextlib.suppress(OSError):  # the server may be the first to end it
                kind(address, rng, told)
            continue
        client = remote.ReplayClient(address)
        try:
            kind(client, rng, told)
        finally:
            if rng.random() < 0.5:
                client._drop()  # without a word
            client.close()


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf(
        "SC_PAGESIZE"
    )


def files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def soak(seconds, pause):
    """Run clients against a server for some seconds, and return what it looked like."""
    told, errors = Counts(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        remote.ReplayServerProcess(
            snapshot_path=f"{folder}/snapshot", table_bytes=2 * TABLE_BYTES, **SETTINGS
        ) as server,
    ):
        pid = server.process.pid
        with remote.ReplayClient(server.address) as watching:
            table = watching.table(SPEC)
            first, open_files = resident(pid), files(pid)
            until = time.monotonic() + seconds

            def going():
                return time.monotonic() < until

            def work(seed):
                try:
                    come_and_go(server.address, seed, going, told, pause)
                except Exception as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
            for thread in threads:
                thread.start()
            seen, most_files, at = [], 0, 0
            while going() and not errors:
                seen.append(resident(pid))
                most_files = max(most_files, files(pid))
                time.sleep(0.05)
                at += 1
                if at % 40 == 0:
                    watching.snapshot()
            for thread in threads:
                thread.join(300)
                assert not thread.is_alive()
            if errors:
                raise errors[0]
            deadline = time.monotonic() + 300
            while watching.stats()["open"] > 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            half_way = len(seen) // 2
            return Found(
                most_bytes=max(seen) - first,
                grown_bytes=int(np.mean(seen[half_way:]) - np.mean(seen[half_way // 2 : half_way])),
                most_files=most_files - open_files,
                files_left=files(pid) - open_files,
                clients=told.clients,
                told=told,
                server=watching.stats(),
                table=table.stats(),
            )


def check(found):
    """Raises AssertionError where the server took more than it may, or counts do not add up."""
    assert found.most_bytes < ALLOWED, (found.most_bytes, ALLOWED)
    assert found.grown_bytes < 16 * MIB
    assert found.most_files <= SETTINGS["connections"] + 4  # a snapshot's file and folder
    assert found.files_left <= 0
    assert found.server["open"] == 1
    assert found.server["waiting"] == 0
    assert found.server["sessions"] <= SETTINGS["sessions"]
    assert found.table["inserts"] == found.told.inserts
    assert found.table["updates"] == found.told.updates
    samples = found.table["samples"]
    assert found.told.samples <= samples <= found.told.samples + found.told.asked
    assert found.table["size"] == min(found.told.inserts, SPEC.capacity)
    assert found.server["malformed"] > 0
    assert found.server["snapshots"] > 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=600.0)
    parser.add_argument("--pause", type=float, default=0.0, help="before each client, in seconds")
    arguments = parser.parse_args()
    result = soak(arguments.seconds, arguments.pause)
    print(result)
    check(result)
