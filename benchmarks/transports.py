"""Times of requests by each transport of the replay server.

    python benchmarks/transports.py [--quick] [--json PATH]

Round trips in C++, without Python in between (`remote.probe`): one client on this machine, one
request at a time, pings of 64 bytes and samples of 64 and 512 items of 40 bytes from a prioritised
table of 131,072. p50 of a round's requests, median of interleaved rounds. Servers that poll stand
still while they are not asked. memif takes a build with DPDK; without it its claims are null. The
rival of shared memory and memif is what they spare: our own sockets, blocking.
"""

import argparse
import contextlib
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cores
import numpy as np
from common import Claim, Report, warn
from replay_server_items import ALPHA, make_items
from rich.console import Console

from accel_rl import remote

PACKAGES = ("numpy", "accel-rl")
CAPACITY, ITEM_BYTES, TABLE = 131_072, 40, "items"
REQUESTS = {"ping 64 B": None, "sample 64": (TABLE, 64), "sample 512": (TABLE, 512)}
TCP, BUSY_TCP, UNIX = "TCP, blocking", "TCP, busy", "Unix, blocking"
UDP, BUSY_UDP = "UDP, blocking", "UDP, busy"
FUTEX, SHARED = "shared memory, futex", "shared memory, busy"
MEMIF = "memif, polling"
# Least part of blocking UDP's time that memif spares.
SPARED = {"ping 64 B": 0.75, "sample 64": 0.5, "sample 512": 0.3}
SHORTER = 10.0  # times: shared memory, busy, than blocking TCP
DPDK = ["--no-huge", "--no-pci", "-m", "256"]


class Transport(NamedTuple):
    """A transport of a running server."""

    server: remote.ReplayServerProcess
    address: str
    busy: bool = False  # of TCP: the client looks for replies all the time

    def p50(self, request: tuple[str, int] | None, rounds: int) -> float:
        """Microseconds; the server runs meanwhile."""
        self.server.process.send_signal(signal.SIGCONT)
        try:
            remote.probe(self.address, sample=request, rounds=rounds // 5, busy=self.busy)
            taken = remote.probe(self.address, sample=request, rounds=rounds, busy=self.busy)
        finally:
            self.server.process.send_signal(signal.SIGSTOP)
        return float(np.median(taken) / 1e3)


def fill(server: remote.ReplayServerProcess) -> None:
    """Its table, by TCP."""
    items = make_items(CAPACITY, ITEM_BYTES)
    columns = tuple(remote.Column(name, "f4", shape) for name, shape in items.columns)
    with remote.ReplayClient(server.address) as client:
        table = client.table(remote.TableSpec(TABLE, CAPACITY, columns, priority_exponent=ALPHA))
        while table.stats()["size"] < CAPACITY:
            table.push(items.arrays, items.priorities)


@contextlib.contextmanager
def transports() -> Iterator[dict[str, Transport]]:
    """All that this machine has, of servers that stand still."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def start(**arguments: object) -> remote.ReplayServerProcess:
            server = remote.ReplayServerProcess(**arguments)
            stack.callback(server.close)
            fill(server)
            stack.callback(server.process.send_signal, signal.SIGCONT)
            server.process.send_signal(signal.SIGSTOP)
            return server

        sleeps = start(udp_port=0, unix_path=folder / "unix", shm_path=folder / "sleeps")
        polls = start(udp_port=0, shm_path=folder / "polls", idle="spin")
        tcp, udp, unix, shared = sleeps.addresses
        found = {
            TCP: Transport(sleeps, tcp),
            UNIX: Transport(sleeps, unix),
            UDP: Transport(sleeps, udp),
            FUTEX: Transport(sleeps, shared),
            BUSY_TCP: Transport(polls, polls.addresses[0], busy=True),
            BUSY_UDP: Transport(polls, f"{polls.addresses[1]}?busy=1"),
            SHARED: Transport(polls, f"{polls.addresses[2]}?busy=1"),
        }
        device = f"net_memif0,role=server,socket={folder}/memif,socket-abstract=no,id=0"
        try:
            bypasses = start(dpdk=[*DPDK, f"--vdev={device}"], idle="spin")
            found[MEMIF] = Transport(bypasses, bypasses.addresses[1])
        except RuntimeError as error:
            warn(f"memif does not run, and its claims are null: {error}")
        yield found


def claims(report: Report, taken: dict[tuple[str, str], list[float]]) -> None:
    """Return the ratio of two transports, the median over rounds."""
    shorter = np.array(taken["ping 64 B", TCP]) / np.array(taken["ping 64 B", SHARED])
    value = float(np.median(shorter))
    claim = "ping 64 B: blocking TCP's p50 over that of busy shared memory"
    ours, theirs = (report.place("ping 64 B", system, "p50") for system in (SHARED, TCP))
    report.claims.append(Claim(claim, value, SHORTER, value >= SHORTER, ours=ours, rival=theirs))
    for request, bound in SPARED.items():
        spared = None
        if (request, MEMIF) in taken:
            parts = np.array(taken[request, MEMIF]) / np.array(taken[request, UDP])
            spared = 1 - float(np.median(parts))
        claim = f"{request}: part of blocking UDP's p50 that memif on one machine spares"
        holds = None if spared is None else spared >= bound
        ours, theirs = (report.place(request, system, "p50") for system in (MEMIF, UDP))
        report.claims.append(Claim(claim, spared, bound, holds, ours=ours, rival=theirs))


def measure(report: Report, rounds: int, requests: int) -> None:
    """Record and claims."""
    taken: dict[tuple[str, str], list[float]] = {}
    with transports() as found:
        for _ in range(rounds):
            for name, request in REQUESTS.items():
                cores.wait(5.0)
                for system, transport in found.items():
                    taken.setdefault((name, system), []).append(transport.p50(request, requests))
    for (name, system), values in taken.items():
        report.add(name, system, "p50", "us", values)
    claims(report, taken)


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds of few requests")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args()
    report = Report(PACKAGES, "transports", quick=options.quick)
    rounds, requests = (3, 500) if options.quick else (15, 2_000)
    measure(report, rounds, requests)
    report.finish(options.json, Console(width=160))


if __name__ == "__main__":
    main()
