"""Cost of keeping what a replay server acknowledges, and what a kill costs then.

    python benchmarks/durability.py [--quick] [--json PATH]

Items pushed a second, by one client over a Unix socket, to servers that keep nothing, that have a
path for snapshots, and that log what changes, in interleaved rounds. Times of a neighbour's pings
and samples, timed in C++ (`remote.probe`), while snapshots are written without pause and while
none is. And servers with a log that are killed while a client pushes: how long it takes until the
next one answers a push, and how long before the kill the first push that is lost was acknowledged.
Files are in a folder of the system's for temporary ones. On two cores client, server and the
thread that writes share them. Beside them the rate at which a program writes the same items to a
file and waits for the disk every 100 ms: where clients are faster, a log makes them wait.
"""

import argparse
import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from common import Claim, Report
from rich.console import Console

from accel_rl import remote

PACKAGES = ("numpy", "accel-rl")
DURABILITIES = ("none", "snapshot", "log")
NONE, LOG, DISK = "none", "log", "plain writes"
PUSHED, SIZES = 64, (40, 28_224)  # items of a push, bytes of an item
MOST_HELD = 256 << 20  # bytes of a table
LEAST_SHARE = 0.7  # of the rate without
INTERVAL_MS = 100  # the default
MOST_BACK, MOST_SLOWER = 3.0, 2.0
QUIET, BESIDE = "no snapshot", "while snapshots are written"
RATE, KILLED = "items per second", "log, killed while a client pushes"


@contextlib.contextmanager
def serving(folder: Path, durability: str) -> Iterator[remote.ReplayServerProcess]:
    """Serve in a process of its own, with files in the folder."""
    folder.mkdir(exist_ok=True)
    path = None if durability == NONE else folder / "snapshot"
    with remote.ReplayServerProcess(
        None, unix_path=folder / "socket", snapshot_path=path, durability=durability
    ) as server:
        yield server


def spec(size: int) -> remote.TableSpec:
    """Return a table of items of so many bytes."""
    column = remote.Column("x", "u1", (size,))
    return remote.TableSpec(f"of-{size}", min(MOST_HELD // size, 1_000_000), (column,))


def push_rate(table: remote.RemoteTable, items: list[np.ndarray], seconds: float) -> float:
    """Return items per second of pushes without pause."""
    began, pushes = time.perf_counter(), 0
    while (taken := time.perf_counter() - began) < seconds:
        table.push(items)
        pushes += 1
    return pushes * PUSHED / taken


def disk_rate(path: Path, items: list[np.ndarray], seconds: float) -> float:
    """Return items per second of plain writes to a file, with a wait for the disk each interval."""
    began = synced = time.perf_counter()
    written = 0
    with path.open("wb", buffering=0) as file:
        while True:
            if (now := time.perf_counter()) - synced > INTERVAL_MS / 1e3:
                os.fdatasync(file.fileno())
                synced = now
            if now - began >= seconds:
                break
            file.write(items[0].data)
            written += PUSHED
        os.fdatasync(file.fileno())
        taken = time.perf_counter() - began
    path.unlink()
    return written / taken


def measure_pushes(report: Report, folder: Path, rounds: int, seconds: float) -> None:
    """Push to servers of each durability in turn."""
    with contextlib.ExitStack() as stack:
        clients = {}
        for durability in DURABILITIES:
            server = stack.enter_context(serving(folder / durability, durability))
            clients[durability] = stack.enter_context(remote.ReplayClient(server.address))
        for size in SIZES:
            tables = {name: client.table(spec(size)) for name, client in clients.items()}
            items = [np.random.default_rng(0).integers(0, 255, (PUSHED, size), np.uint8)]
            for table in tables.values():
                push_rate(table, items, seconds)  # memory is there, files have begun
            rounds_of: dict[str, list[float]] = {name: [] for name in (*tables, DISK)}
            for _ in range(rounds):
                for name, table in tables.items():
                    rounds_of[name].append(push_rate(table, items, seconds))
                rounds_of[DISK].append(disk_rate(folder / "file", items, seconds))
            case = f"push {PUSHED} of {size:,} B"
            for name, values in rounds_of.items():
                report.add(case, name, RATE, "items/s", values)
            rivals = {NONE: "the rate without one"}
            if size == max(SIZES):  # that of small ones is the processor's
                rivals[DISK] = "the rate of plain writes"
            for rival, what in rivals.items():
                ratios = np.divide(rounds_of[LOG], rounds_of[rival])
                report.add(case, f"{LOG} / {rival}", f"ratio of {RATE}", "x", ratios)
                text = f"{case}: with a log at least {LEAST_SHARE:g} of {what}"
                report.claim(text, LEAST_SHARE, [case], LOG, rival, RATE)


def measure_snapshots(report: Report, folder: Path, probes: int) -> None:
    """Time a neighbour while snapshots are written, and while none is."""
    with (
        serving(folder / "neighbour", "snapshot") as server,
        remote.ReplayClient(server.address) as filling,
        remote.ReplayClient(server.address, timeout=None) as writing,
    ):
        wanted = spec(SIZES[0])
        table = filling.table(wanted)
        many = [np.zeros((50_000, SIZES[0]), np.uint8)]
        while table.stats()["size"] < wanted.capacity:
            table.push(many)
        going = threading.Event()

        def write() -> None:
            while not going.is_set():
                writing.snapshot()

        kinds: dict[str, Callable[[], np.ndarray]] = {
            "ping": lambda: remote.probe(server.address, rounds=probes),
            "sample 64": lambda: remote.probe(
                server.address, sample=(wanted.name, 64), rounds=probes
            ),
        }
        quiet = {name: probe() for name, probe in kinds.items()}
        thread = threading.Thread(target=write)
        thread.start()
        try:
            beside = {name: probe() for name, probe in kinds.items()}
        finally:
            going.set()
            thread.join()
    for name in kinds:
        p99 = []
        for system, times in ((QUIET, quiet), (BESIDE, beside)):
            p50, last = np.percentile(times[name] / 1e3, [50, 99])
            report.add(name, system, "p50", "us", [p50])
            report.add(name, system, "p99", "us", [last])
            p99.append(float(last))
        value = p99[1] / p99[0]
        text = f"{name}: p99 while snapshots are written at most {MOST_SLOWER:g} times that without"
        claim = Claim(
            text,
            value,
            MOST_SLOWER,
            value <= MOST_SLOWER,
            sense="<=",
            ours=report.place(name, BESIDE, "p99"),
            rival=report.place(name, QUIET, "p99"),
        )
        report.claims.append(claim)


def kill_once(folder: Path) -> tuple[float, float]:
    """Return seconds until a push is answered again, and how far back the loss goes."""
    answered: list[float] = []
    going = threading.Event()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(serving(folder, LOG))
        client = stack.enter_context(remote.ReplayClient(first.address, reconnect=60.0))
        table = client.table(spec(SIZES[0]))
        items = [np.zeros((PUSHED, SIZES[0]), np.uint8)]

        def push() -> None:
            while not going.is_set():
                table.push(items)
                answered.append(time.perf_counter())

        before = table.stats()["inserts"]
        thread = threading.Thread(target=push)
        thread.start()
        time.sleep(1.0)
        first.process.kill()
        killed = time.perf_counter()
        first.close()
        stack.enter_context(serving(folder, LOG))
        listening = time.perf_counter()
        while answered[-1] <= listening:
            time.sleep(0.001)
        going.set()
        thread.join()
        lost = len(answered) - (table.stats()["inserts"] - before) // PUSHED
    times = np.array(answered)
    back = times[times > listening][0] - listening
    known = times[times <= killed]
    return back, float(killed - known[-lost]) if lost > 0 else 0.0


def measure_kills(report: Report, folder: Path, kills: int) -> None:
    """Kill servers, and claim how soon they are back and how little is lost."""
    back, lost = np.array([kill_once(folder / f"kill-{k}") for k in range(kills)]).T
    for metric, unit, values, most in (
        ("from listening to an answered push", "s", back, MOST_BACK),
        ("lost before the kill", "ms", lost * 1e3, INTERVAL_MS),
    ):
        report.add(KILLED, LOG, metric, unit, values)
        worst = float(values.max())
        text = f"{metric}, the worst of {kills} kills: at most {most:g} {unit}"
        place = report.place(KILLED, LOG, metric)
        report.claims.append(Claim(text, worst, most, worst <= most, sense="<=", ours=place))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    quick = options.quick
    report = Report(PACKAGES, "durability", quick=quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_pushes(report, folder, 3 if quick else 15, 0.3 if quick else 1.0)
        measure_snapshots(report, folder, 2_000 if quick else 50_000)
        measure_kills(report, folder, 2 if quick else 10)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
