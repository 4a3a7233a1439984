"""Time that one client's requests take while another client does its worst.

    python benchmarks/neighbour.py [--quick] [--json PATH]

For each transport and each kind of hostile work: p50, p99 and the longest of a neighbour's pings
and samples of 64 items, timed in C++ (`remote.probe`), while a process sends requests of that kind
without pause, over the same transport, on tables of its own. Figures are medians of three rounds.
Over TCP and Unix sockets it sends hundreds before it reads a reply; over UDP and shared memory four
clients call at once. The server, the neighbour and the hostile process want three cores: the
hostile one has the lowest priority, or on fewer cores times would have the scheduler's slices in
them.
"""

import argparse
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
from common import Claim, Report
from rich.console import Console

from accel_rl import remote
from accel_rl.remote import wire
from accel_rl.remote.links import parse_address
from accel_rl.remote.wire import Op

PACKAGES = ("numpy", "accel-rl")
CAPACITY = 4_000_000  # of the table that AMPER searches
FRAME = 28_224  # bytes of a large item: 84 x 84 x 4
ROUNDS = 3
MOST_MS = 5.0  # of a neighbour's p99
NEIGHBOUR = "neighbour"
PIPELINED, CLIENTS = 200, 4


def amper_spec(capacity: int) -> remote.TableSpec:
    """Return the table that is costly to search: of heavy tails, so few items match."""
    column = remote.Column("x", "u1")
    return remote.TableSpec("tails", capacity, (column,), priority_exponent=1.0, sampler="amper_fr")


LARGE = remote.TableSpec("large", 4_096, (remote.Column("x", "u1", (FRAME,)),))
SMALL = remote.TableSpec("small", 131_072, (remote.Column("x", "f4", (10,)),))


def fill(client: remote.ReplayClient, capacity: int) -> None:
    """Make and fill all tables."""
    rng = np.random.default_rng(0)
    tails = client.table(amper_spec(capacity))
    for _ in range(0, capacity, 50_000):
        tails.push([np.zeros(50_000, np.uint8)], rng.lognormal(0, 3, 50_000).astype(np.float32))
    large = client.table(LARGE)
    for _ in range(8):
        large.push([np.zeros((128, FRAME), np.uint8)])
    small = client.table(SMALL)
    for _ in range(2):
        small.push([np.zeros((65_536, 10), np.float32)])


def kinds(capacity: int) -> dict[str, tuple[remote.TableSpec, Callable[[int], bytes]]]:
    """Return the kinds of work: a table, and the frame of a request without its session."""

    def sample(batch: int) -> Callable[[int], bytes]:
        def build(number: int) -> bytes:
            fixed = wire.U64.pack(number) + wire.U32.pack(batch) + wire.U32.pack(0)
            return bytes(wire.request_frame(Op.SAMPLE, fixed=fixed))

        return build

    def ping(number: int) -> bytes:
        return bytes(wire.request_frame(Op.PING, sections=(bytes(12 << 20),)))

    return {
        "AMPER": (amper_spec(capacity), sample(4_096)),
        "small samples": (SMALL, sample(64)),
        "samples of 65,536": (SMALL, sample(65_536)),
        "large samples": (LARGE, sample(512)),
        "large pings": (SMALL, ping),
    }


def pipeline(
    address: str, spec: remote.TableSpec, build: Callable[[int], bytes], begun: Event
) -> None:
    """Send requests without pause by a socket of its own, and read what comes."""
    where = parse_address(address)
    if where.kind == "unix":
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(where.path))
    else:
        raw = socket.create_connection((where.host, where.port))
    raw.sendall(wire.request_frame(Op.HELLO, fixed=bytes(24)))
    session = wire.read_header(raw.recv(64), 64).session
    opening = wire.describe(spec, create=False)
    wire.SESSION_AND_REQUEST.pack_into(opening, wire.SESSION_AT, session, 1)
    raw.sendall(opening)
    table = wire.read_header(raw.recv(4096), 4096).table
    frames = []
    for number in range(2, 2 + (PIPELINED if len(build(0)) < 4_096 else 1)):
        frame = bytearray(build(number))
        wire.SESSION_AND_REQUEST.pack_into(frame, wire.SESSION_AT, session, number)
        wire.U16.pack_into(frame, wire.TABLE_AT, table)
        frames.append(bytes(frame))
    whole = b"".join(frames)

    def drain() -> None:
        space = bytearray(1 << 22)
        while raw.recv_into(space):
            begun.set()

    threading.Thread(target=drain, daemon=True).start()
    while True:
        raw.sendall(whole)


def call(address: str, spec: remote.TableSpec, kind: str, begun: Event) -> None:
    """Call without pause by clients of the library."""

    def one(name: str) -> None:
        with remote.ReplayClient(address) as client:
            table = client.table(spec)
            seed = 0
            while True:
                seed += 1
                if kind == "large pings":
                    client.publish(name, time.time_ns(), bytes(12 << 20))  # versions must grow
                else:
                    batch = {"AMPER": 4_096, "large samples": 512, "small samples": 64}
                    table.sample(seed=seed, batch=batch.get(kind, 65_536))
                begun.set()

    names = map(str, range(CLIENTS))
    threads = [threading.Thread(target=one, args=(each,), daemon=True) for each in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def attack(address: str, kind: str, capacity: int, begun: Event) -> None:
    """Do a kind of hostile work until killed."""
    os.nice(19)
    spec, build = kinds(capacity)[kind]
    if parse_address(address).kind in ("tcp", "unix"):
        pipeline(address, spec, build, begun)
    call(address, spec, kind, begun)


def measure(address: str, kind: str | None, capacity: int, requests: int) -> list[np.ndarray]:
    """Return a neighbour's times in ms, [ROUNDS, requests]: of pings, and of samples."""
    context = multiprocessing.get_context("spawn")
    hostile = None
    if kind is not None:
        begun = context.Event()
        order = (address, kind, capacity, begun)
        hostile = context.Process(target=attack, args=order, daemon=True)
        hostile.start()
        if not begun.wait(60):
            raise RuntimeError(f"{kind}: the hostile client got no reply")
    try:
        rounds = [
            [remote.probe(address, sample=each, rounds=requests) / 1e6 for _ in range(ROUNDS)]
            for each in (None, ("small", 64))
        ]
    finally:
        if hostile is not None:
            assert hostile.is_alive()
            hostile.kill()
            hostile.join()
    return [np.array(each) for each in rounds]


def claim(report: Report, transport: str, worst: dict[str, float]) -> None:
    """Claim the bound of a neighbour's pings, for the kind of work that delays them most."""
    kind = max(worst, key=lambda each: worst[each]) if worst else None
    text = f"{transport}: p99 of a neighbour's pings at most {MOST_MS:g} ms (worst: {kind})"
    value = None if kind is None else worst[kind]
    holds = None if value is None else value <= MOST_MS
    place = None if kind is None else report.place(f"{transport}, {kind}, ping", NEIGHBOUR, "p99")
    report.claims.append(Claim(text, value, MOST_MS, holds, sense="<=", ours=place))


def run(report: Report, server: remote.ReplayServerProcess, capacity: int, requests: int) -> None:
    """Time a neighbour over each transport, alone and beside each kind of work."""
    with remote.ReplayClient(server.address) as client:
        fill(client, capacity)
    for address in server.addresses:
        transport = parse_address(address).kind
        worst = {}
        for kind in (None, *kinds(capacity)):
            times = measure(address, kind, capacity, requests)
            for request, taken in zip(("ping", "sample 64"), times, strict=True):
                case = f"{transport}, {kind or 'nobody else'}, {request}"
                p50, p99, longest = np.percentile(taken, [50, 99, 100], axis=1).tolist()
                for metric, values in (("p50", p50), ("p99", p99), ("longest", longest)):
                    report.add(case, NEIGHBOUR, metric, "ms", values)
                if kind is not None and request == "ping":
                    worst[kind] = float(np.median(p99))
        claim(report, transport, worst)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer requests, a smaller table")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    report = Report(PACKAGES, "neighbour", quick=options.quick)
    with tempfile.TemporaryDirectory() as folder:
        paths = {"unix_path": Path(folder) / "socket", "shm_path": Path(folder) / "memory"}
        with remote.ReplayServerProcess(udp_port=0, **paths) as server:
            if options.quick:
                run(report, server, CAPACITY // 10, 400)
            else:
                run(report, server, CAPACITY, 2_000)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
