"""Growth of the replay server with clients and with the items of a table."""

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from growth_fit import Case, Curve, resident
from growth_replay import divisor
from replay_server_items import p50

from accel_rl import remote

BATCH, PUSHED, ITEMS = 64, 50, 100_000
AT_ONCE = 50_000  # items of a push that fills a table
SECONDS = 2.0  # for which clients call
REQUEST, P50, P99 = "request, all clients", "request of a client, p50", "request of a client, p99"
IDLE = "request beside idle clients, p50"
SAMPLE, PUSH, SET, HELD = f"sample {BATCH}, p50", f"push {PUSHED}, p50", "update 64, p50", "server"
CALLS = 400


@contextlib.contextmanager
def serving(items: int) -> Iterator[tuple[remote.ReplayServerProcess, remote.TableSpec]]:
    """Run a server in a process, with a full table of items of 8 bytes."""
    spec = remote.TableSpec("t", items, (remote.Column("x", "f4", (2,)),))
    with tempfile.TemporaryDirectory() as folder:
        where = {"host": None, "unix_path": Path(folder) / "socket"}
        with remote.ReplayServerProcess(**where) as server:
            with remote.ReplayClient(server.address) as client:
                table, count = client.table(spec), divisor(items, AT_ONCE)
                random = np.random.default_rng(0)
                pushed = [random.random((count, 2), np.float32)]
                priorities = random.lognormal(sigma=1.5, size=count).astype(np.float32)
                for _ in range(items // count):
                    table.push(pushed, priorities)
            yield server, spec


def by_clients(clients: int) -> dict[str, float]:
    """Measure samples by clients that all wait for their replies; each has a thread."""
    with contextlib.ExitStack() as stack:
        server, spec = stack.enter_context(serving(ITEMS))
        links = [stack.enter_context(remote.ReplayClient(server.address)) for _ in range(clients)]
        tables = [link.table(spec) for link in links]
        alone = p50(lambda: tables[0].sample(0, BATCH), CALLS)
        taken: list[list[float]] = [[] for _ in tables]
        start = threading.Barrier(clients + 1)
        ended = threading.Event()

        def act(number: int) -> None:
            table = tables[number]
            start.wait()
            while not ended.is_set():
                began = time.perf_counter()
                table.sample(number, BATCH)
                taken[number].append(time.perf_counter() - began)

        threads = [threading.Thread(target=act, args=(n,), daemon=True) for n in range(clients)]
        for each in threads:
            each.start()
        start.wait()
        began = time.perf_counter()
        time.sleep(SECONDS)
        ended.set()
        passed = time.perf_counter() - began
        for each in threads:
            each.join()
    times = np.concatenate([np.asarray(each) for each in taken])
    middle, slow = np.percentile(times, (50, 99)) * 1e6
    found = {REQUEST: 1e6 * passed / len(times), P50: float(middle), P99: float(slow)}
    return {**found, IDLE: alone}


def by_items(items: int) -> dict[str, float]:
    """Measure calls of one client, by the items of the table."""
    with serving(items) as (server, spec), remote.ReplayClient(server.address) as client:
        table = client.table(spec)
        held = resident(server.process.pid) / items
        some, ones = [np.zeros((PUSHED, 2), np.float32)], np.ones(PUSHED, np.float32)
        seeds = iter(range(10 * CALLS))
        drawn, priorities = table.sample(0, BATCH), np.ones(BATCH, np.float32)

        def update() -> None:
            table.update(drawn, priorities)

        return {
            SAMPLE: p50(lambda: table.sample(next(seeds), BATCH), CALLS),
            PUSH: p50(lambda: table.push(some, ones), CALLS),
            SET: p50(update, CALLS),
            HELD: held,
        }


CASES = (
    Case(
        "clients", "replay server by clients", "clients", (1, 4, 16, 64, 256), (1, 4, 16),
        by_clients,
        (
            Curve(REQUEST, "us", "O(1)"), Curve(P50, "us", "O(n)"), Curve(P99, "us", "O(n)"),
            Curve(IDLE, "us", "O(1)"),
        ),
    ),
    Case(
        "server", "replay server by items of 8 B", "items", tuple(10**n for n in range(4, 9)),
        (10_000, 30_000, 100_000), by_items,
        (
            *(Curve(name, "us", "O(log n)") for name in (SAMPLE, PUSH, SET)),
            Curve(HELD, "B an item", "O(1)"),
        ),
        (), lambda size: 40.0 * size, 1.5,
    ),
)  # fmt: skip
