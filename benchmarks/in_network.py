"""What a place on the network's path spares: requests to a server there, and one hop further.

    python benchmarks/in_network.py [--quick] [--json PATH]

Three namespaces of this machine's kernel in a row, cables (veth) between them. The client is in the
first and asks by the kernel's UDP: from Python; and, to see what of the time is the client's, from
C++, sleeping until the reply comes or polling for it. The middle one has our server in the path, at
two of DPDK's ports (af_packet): it answers what is for itself and forwards all else. In the third
is the same server again, behind it. Neither bypasses the kernel, and two cores are few for two
servers that poll: the one that is not needed stands still. Items of 40 bytes in a prioritised
table; claims are about Python's times. The paper (Furukawa and Matsutani, PDP 2022) reports 11.7 to
28.1 % less for accesses and 21.9 to 29.1 % less for prioritised sampling, on machines and links of
its own. Takes root, iproute2 and a build with DPDK.
"""

import argparse
import contextlib
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path

import cores
import numpy as np
from common import Claim, Report, warn
from replay_server_items import ALPHA, make_items, p50
from rich.console import Console
from transports import DPDK, REQUESTS, TABLE

from accel_rl import remote
from accel_rl.remote import namespaces
from accel_rl.remote.module import native

SECRET = b"what both sides know"
PACKAGES = ("numpy", "accel-rl")
CAPACITY, ITEM_BYTES = 16_384, 40
PATH, FURTHER = "in the path", "one hop further"
NATIVE = {"C++": "", "C++, polling": "?busy=1"}  # clients, and what they add to the address
# Least part of the time one hop further that the path is to spare, and what the paper reports.
SPARED = {
    "ping 64 B": (0.15, "11.7 to 28.1 %, for accesses"),
    "sample 64": (0.2, "21.9 to 29.1 %, for prioritised sampling"),
    "sample 512": (0.2, "21.9 to 29.1 %, for prioritised sampling"),
}


def server_at(address: str, *devices: str) -> dict[str, object]:
    """Arguments of a server at devices of a namespace."""
    given = [f"--vdev=net_af_packet{k},iface={device}" for k, device in enumerate(devices)]
    return {"host": None, "dpdk": DPDK + given, "dpdk_address": address, "idle": "yield"}


@contextlib.contextmanager
def servers() -> Iterator[tuple[namespaces.Namespaces, dict[str, remote.ReplayServerProcess]]]:
    """Return the network, and its two servers."""
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(namespaces.Namespaces())
        network.add("client", "middle", "behind")
        network.cable("client", "client", "10.9.0.1/24", "middle", "left")
        network.cable("middle", "right", None, "behind", "port")
        path = server_at("10.9.0.2", "left", "right") | {"in_network": True}
        with network.entered("middle"):
            near = stack.enter_context(remote.ReplayServerProcess(**path, secret=SECRET))
        with network.entered("behind"):
            behind = server_at("10.9.0.4", "port")
            far = stack.enter_context(remote.ReplayServerProcess(**behind, secret=SECRET))
        stack.callback(far.process.send_signal, signal.SIGCONT)
        yield network, {PATH: near, FURTHER: far}


def ask(address: str, requests: int) -> dict[str, float]:
    """p50 of each request, microseconds, by clients that are made for it."""
    items = make_items(CAPACITY, ITEM_BYTES)
    columns = tuple(remote.Column(name, "f4", shape) for name, shape in items.columns)
    spec = remote.TableSpec(TABLE, CAPACITY, columns, priority_exponent=ALPHA)
    seeds = itertools.count()
    with remote.ReplayClient(address, SECRET, timeout=20.0) as client:
        table = client.table(spec)
        while table.stats()["size"] < CAPACITY:
            table.push(items.arrays, items.priorities)
        calls = {
            "ping 64 B": client.ping,
            "sample 64": lambda: table.sample(next(seeds), 64),
            "sample 512": lambda: table.sample(next(seeds), 512),
        }
        found = {name: p50(call, requests) for name, call in calls.items()}
    for client, options in NATIVE.items():
        for name, sample in REQUESTS.items():
            times = remote.probe(address + options, sample=sample, rounds=requests, secret=SECRET)
            found[f"{name}, {client}"] = float(np.median(times)) / 1e3
    return found


def why_not() -> str:
    """Why it cannot run here; empty: it can."""
    if why := namespaces.why_absent():
        return f"network namespaces: {why}"
    return str(native().describe_dpdk()["why"])


def measure(report: Report, rounds: int, requests: int) -> None:
    """Record and claims."""
    taken: dict[tuple[str, str], list[float]] = {}
    with servers() as (network, found_servers):
        behind = found_servers[FURTHER].process
        for _ in range(rounds):
            for system, server in found_servers.items():
                behind.send_signal(signal.SIGCONT if system == FURTHER else signal.SIGSTOP)
                cores.wait(2.0)
                with network.entered("client"):
                    found = ask(server.address, requests)
                for name, value in found.items():
                    taken.setdefault((name, system), []).append(value)
    for (name, system), times in taken.items():
        report.add(name, system, "p50", "us", times)
    claims(report, taken)


def claims(report: Report, taken: dict[tuple[str, str], list[float]]) -> None:
    """Return the ratio of the two places, the median over rounds; null if none ran."""
    for name, (bound, theirs) in SPARED.items():
        spared = None
        if taken:
            parts = np.array(taken[name, PATH]) / np.array(taken[name, FURTHER])
            spared = 1 - float(np.median(parts))
        holds = None if spared is None else spared >= bound
        claim = f"{name}: part of the time one hop further that the path spares (paper: {theirs})"
        ours, theirs = (report.place(name, system, "p50") for system in (PATH, FURTHER))
        report.claims.append(Claim(claim, spared, bound, holds, ours=ours, rival=theirs))


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds of few requests")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args()
    report = Report(PACKAGES, "in_network", quick=options.quick, seeds="0, 1, ... of samples")
    rounds, requests = (3, 200) if options.quick else (15, 500)
    if why := why_not():
        warn(f"nothing was measured, and all claims are null: {why}")
        claims(report, {})
    else:
        measure(report, rounds, requests)
    report.finish(options.json, Console(width=160))


if __name__ == "__main__":
    main()
