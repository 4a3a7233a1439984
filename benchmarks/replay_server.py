"""Times of calls of the replay server, beside what people build in its place.

    python benchmarks/replay_server.py [--quick] [--ray PYTHON] [--reverb PYTHON] [--json PATH]

One client, one outstanding call, the server in a process of its own on this machine. Rivals hold
the same items and get the same payloads: pyzmq around cpprb's prioritised buffer; Redis, which
cannot draw by priority and here does less (push MSET and ZADD, sample MGET of slots drawn by the
client, update ZADD); a Ray actor around cpprb, and Reverb, each in the environment of another
interpreter (`pip install ray cpprb numpy`; `pip install dm-reverb==0.14.0 tensorflow==2.15.1`),
without which its claims are null. p50 of the calls of a round, the median of interleaved rounds.
Two cores and a client that waits: a rival with many threads is at a disadvantage here, and Reverb
is built for many streams of long trajectories, not for single items.
"""

import argparse
import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import cores
import numpy as np
from common import Claim, Report, warn
from replay_server_items import ALPHA, Items, make_items, p50
from replay_server_rivals import OtherRival, redis_rival, zmq_rival
from rich.console import Console

from accel_rl import remote

PACKAGES = ("numpy", "cpprb", "pyzmq", "redis", "accel-rl")
CAPACITY = {40: 131_072, 28_224: 4_096}
PUSHED, BATCHES = 50, (64, 512)
OPERATIONS = ("push 50", "sample 64", "sample 512", "update 64")
TCP, UNIX, ZMQ, REDIS, RAY, REVERB = (
    "accel_rl, TCP",
    "accel_rl, Unix",
    "pyzmq + cpprb",
    "Redis",
    "Ray actor",
    "Reverb",
)
TARGETS = {
    ("push 50", ZMQ): 2.0, ("push 50", REDIS): 5.0, ("push 50", RAY): 25.0,
    ("sample 64", ZMQ): 2.5, ("sample 64", REDIS): 3.5, ("sample 64", RAY): 20.0,
    ("push 50", REVERB): 25.0, ("sample 64", REVERB): 20.0, ("sample 512", REVERB): 30.0,
    ("sample 512", ZMQ): 3.5, ("sample 512", REDIS): 8.0, ("sample 512", RAY): 12.0,
}  # fmt: skip
CALLS = 300

Calls = dict[str, Callable[[], object]]


def ours(client: remote.ReplayClient, items: Items) -> Calls:
    """Call of a client of our server, whose table is full."""
    columns = tuple(remote.Column(name, "f4", shape) for name, shape in items.columns)
    name = str(client.address).split(":")[0]
    table = client.table(remote.TableSpec(name, items.capacity, columns, priority_exponent=ALPHA))
    for first in range(0, items.capacity, PUSHED):
        some = items.part(first, PUSHED)
        table.push(some, items.priorities[: len(next(iter(some.values())))])
    seeds, some = itertools.count(), items.part(0, PUSHED)
    drawn, priorities = table.sample(0, 64), np.ones(64, np.float32)
    return {
        "push 50": lambda: table.push(some, items.priorities[:PUSHED]),
        "sample 64": lambda: table.sample(next(seeds), 64),
        "sample 512": lambda: table.sample(next(seeds), 512),
        "update 64": lambda: table.update(drawn, priorities),
    }


@contextlib.contextmanager
def systems(items: Items, others: Sequence[OtherRival]) -> Iterator[dict[str, Calls]]:
    """All that run here, each full."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(
            remote.ReplayServerProcess(unix_path=folder / "socket", table_bytes=2**31)
        )
        found = {}
        for name, address in zip((TCP, UNIX), server.addresses, strict=True):
            found[name] = ours(stack.enter_context(remote.ReplayClient(address)), items)
        for name, start in ((ZMQ, zmq_rival), (REDIS, redis_rival)):
            try:
                found[name] = stack.enter_context(start(items, folder))
            except (ImportError, OSError) as error:
                warn(f"{name} does not run, and its claims are null: {error}")
        for other in others:
            if other.fill(items):
                found[other.name] = {}
        yield found


def measure(
    report: Report, item_bytes: int, rounds: int, calls: int, others: Sequence[OtherRival]
) -> None:
    """Record of one size of items."""
    case = f"{item_bytes:,} B items"
    taken: dict[tuple[str, str], list[float]] = {}
    few = calls if item_bytes < 1_000 else max(20, calls // 10)
    elsewhere = {other.name: other for other in others}
    with systems(make_items(CAPACITY[item_bytes], item_bytes), others) as found:
        for _ in range(rounds):
            for operation in OPERATIONS:
                cores.wait(5.0)
                for name, each in found.items():
                    if name in elsewhere:
                        value = elsewhere[name].p50(operation, max(20, few // 5))
                    else:
                        value = p50(each[operation], few)
                    if value is not None:
                        taken.setdefault((operation, name), []).append(value)
    for (operation, name), values in taken.items():
        report.add(f"{case}, {operation}", name, "p50", "us", values)
    for (operation, rival), bound in TARGETS.items():
        if item_bytes > 1_000:
            continue  # bound by memory: reported, and nothing claimed
        theirs = taken.get((operation, rival))
        ratio = None
        if theirs:
            here = np.minimum(taken[operation, TCP], taken[operation, UNIX])
            ratio = float(np.median(np.array(theirs) / here))
        claim = f"{case}, {operation}: {rival}'s p50 over ours, the faster of TCP and Unix"
        places = {
            name: report.place(f"{case}, {operation}", name, "p50") for name in (TCP, UNIX, rival)
        }
        faster = min((TCP, UNIX), key=lambda name: np.median(taken[operation, name]))
        holds = None if ratio is None else ratio >= bound
        report.claims.append(
            Claim(claim, ratio, bound, holds, ours=places[faster], rival=places[rival])
        )


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds of few calls")
    parser.add_argument("--ray", metavar="PYTHON", help="interpreter that has ray and cpprb")
    parser.add_argument("--reverb", metavar="PYTHON", help="interpreter that has dm-reverb")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args()
    others = [
        OtherRival(RAY, options.ray, "replay_server_ray.py", "ray and cpprb"),
        OtherRival(REVERB, options.reverb, "replay_server_reverb.py", "dm-reverb"),
    ]
    report = Report(PACKAGES, "replay_server", quick=options.quick, seeds="0 of NumPy's generator")
    rounds, calls = (3, 100) if options.quick else (9, CALLS)
    for item_bytes in CAPACITY:
        measure(report, item_bytes, rounds, calls, others)
    for other in others:
        other.close()
    report.finish(options.json, Console(width=160))


if __name__ == "__main__":
    main()
