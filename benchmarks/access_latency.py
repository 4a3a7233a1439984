"""Access latency of the replay server, by actors, size of an experience and transport.

    python benchmarks/access_latency.py [--quick] [--json PATH] [--plot PATH]

The sweep that the paper on in-network sampling motivates (PDP 2022), on one machine: a server in a
process of its own, actors in another, each of which pushes 50 experiences after every 50 steps at
a given pace, and a learner that samples 64, learns and writes back priorities. DPDK's memif has one
client an interface: the learner; its actors push by TCP, and its server polls, on a core of its
own. Access latency is
the learner's time for sample and update, with the library's clients; its share of the learner's
time is beside an update of DQN on observations of that size (two hidden layers of 256), measured in
the same run. Tables hold at most 64 MiB. On two cores actors, server and learner share them, so
that what many actors add is mostly their own work; a pace that actors do not keep is recorded.
"""

import argparse
import contextlib
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from common import Report, warn
from rich.console import Console
from transports import DPDK

from accel_rl import agents, remote
from accel_rl.plot import style
from accel_rl.remote.links import parse_address
from accel_rl.types import Batch, Box, Discrete

PACKAGES = ("numpy", "jax", "accel-rl")
SIZES, ACTORS = (40, 1_000, 7_056, 28_224), (1, 2, 4, 8, 16)
PUSHED, BATCH, PACE = 50, 64, 500.0  # items; items; steps of an actor a second
MOST_HELD = 64 << 20
NAMES = {"tcp": "TCP", "udp": "UDP", "unix": "Unix", "shm": "shared memory", "memif": "memif"}
SAMPLE, UPDATE, SHARE = "sample 64", "update 64", "share of the learner's time"


def spec(size: int) -> remote.TableSpec:
    """Return a table of experiences of so many bytes."""
    capacity = min(MOST_HELD // size, 100_000)
    return remote.TableSpec(f"of-{size}", capacity, (remote.Column("x", "u1", (size,)),))


def act(address: str, size: int, actors: int, ready: Event, counts: "Sequence[int]") -> None:
    """Push for so many actors, each with a client and a pace of its own, until killed."""
    items = [np.random.default_rng(0).integers(0, 255, (PUSHED, size), np.uint8)]

    def one(number: int) -> None:
        with remote.ReplayClient(address) as client:
            table = client.table(spec(size))
            due = time.monotonic() + number * PUSHED / PACE / actors
            while True:
                time.sleep(max(0.0, due - time.monotonic()))
                table.push(items, np.ones(PUSHED, np.float32))
                counts[number] += 1
                due += PUSHED / PACE

    threads = [threading.Thread(target=one, args=(each,), daemon=True) for each in range(actors)]
    for each in threads:
        each.start()
    ready.set()
    for each in threads:
        each.join()


@contextlib.contextmanager
def acting(address: str, size: int, actors: int) -> Iterator["Sequence[int]"]:
    """Have actors push in a process; yield their numbers of pushes so far."""
    context = multiprocessing.get_context("spawn")
    ready, counts = context.Event(), context.Array("q", actors, lock=False)
    process = context.Process(target=act, args=(address, size, actors, ready, counts), daemon=True)
    process.start()
    try:
        ready.wait(60)
        yield counts
        if not process.is_alive():
            raise RuntimeError(f"the actors at {address} ended")
    finally:
        process.kill()
        process.join()


def learning_seconds(size: int, rounds: int) -> float:
    """Return the median time of an update of DQN on observations of so many bytes."""
    width = size // 4
    agent = agents.dqn(
        Box((-1.0,) * width, (1.0,) * width, (width,)), Discrete(2), hidden=(256, 256)
    )
    state = agent.init(jax.random.key(0))
    observation, zeros = jnp.ones((BATCH, width)), jnp.zeros(BATCH)
    batch = Batch(observation, zeros.astype(jnp.int32), zeros, zeros, observation)
    learn = jax.jit(agent.learn)
    taken = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        state, _ = jax.block_until_ready(learn(state, batch, zeros + 1, jax.random.key(0)))
        taken.append(time.perf_counter() - began)
    return float(np.median(taken[1:]))


def access_times(address: str, size: int, seconds: float) -> dict[str, np.ndarray]:
    """Return a learner's times of samples and updates, in seconds."""
    taken: dict[str, list[float]] = {SAMPLE: [], UPDATE: []}
    priorities = np.random.default_rng(0).random(BATCH, np.float32)
    with remote.ReplayClient(address) as client:
        table = client.table(spec(size))
        end, seed = time.perf_counter() + seconds, 0
        while (began := time.perf_counter()) < end:
            drawn = table.sample(seed, BATCH, wait=10.0)
            sampled = time.perf_counter()
            table.set_priorities(drawn.slots, drawn.generations, priorities)
            taken[SAMPLE].append(sampled - began)
            taken[UPDATE].append(time.perf_counter() - sampled)
            seed += 1
    return {name: np.array(values) for name, values in taken.items()}


def case(size: int, actors: int) -> str:
    """Return a case's name."""
    return f"{size:,} B, {actors} actor{'s' if actors > 1 else ''}"


class Server(NamedTuple):
    """Addresses of one server."""

    learner: str
    actors: str


def measure(
    report: Report, servers: Sequence[Server], learning: dict[int, float], most: int, seconds: float
) -> None:
    """Measure each size (with an update's seconds), number of actors and address."""
    for size, update in learning.items():
        for actors in [each for each in ACTORS if each <= most]:
            for address, pushes in servers:
                system = NAMES[parse_address(address).kind]
                with acting(pushes, size, actors) as counts:
                    access_times(address, size, seconds / 4)  # tables are there
                    before, began = sum(counts), time.perf_counter()
                    found = access_times(address, size, seconds)
                    kept = (sum(counts) - before) / (time.perf_counter() - began)
                where = case(size, actors)
                for name, times in found.items():
                    for metric, share in (("p50", 50), ("p99", 99)):
                        value = np.percentile(times, share) * 1e6
                        report.add(where, system, f"{name}, {metric}", "us", [value])
                waited = float(np.mean(found[SAMPLE]) + np.mean(found[UPDATE]))
                report.add(where, system, SHARE, "%", [100 * waited / (waited + update)])
                wanted = actors * PACE / PUSHED
                report.add(where, system, "pace kept by actors", "%", [100 * kept / wanted])


def draw(report: Report, sizes: Sequence[int], most: int, path: Path) -> None:
    """Draw access latency and share of the learner's time over the number of actors."""
    numbers = [each for each in ACTORS if each <= most]
    rows = ((f"{SAMPLE}, p50", "sample of 64, p50 (us)"), (SHARE, f"{SHARE} (%)"))
    with plt.style.context(style.STYLE):
        figure, axes = plt.subplots(
            2, len(sizes), figsize=(2.9 * len(sizes), 5.2), sharex=True, squeeze=False
        )
        for ax, size in zip(axes[0], sizes, strict=True):
            ax.set_title(f"{size:,} B an experience")
        for row, (metric, label) in zip(axes, rows, strict=True):
            for ax, size in zip(row, sizes, strict=True):
                for system, color in zip(NAMES.values(), style.COLORS, strict=False):
                    found = [report.find(case(size, each), system, metric) for each in numbers]
                    points = [
                        (n, each.value) for n, each in zip(numbers, found, strict=True) if each
                    ]
                    if points:
                        ax.plot(*np.array(points).T, marker="o", markersize=3, color=color,
                                label=system)  # fmt: skip
                ax.set_xscale("log", base=2)
                ax.set_xticks(numbers, [str(each) for each in numbers])
                ax.set_ylim(bottom=0)
                style.quiet(ax)
            row[0].set_ylabel(label)
        for ax in axes[1]:
            ax.set_xlabel("actors")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(path)
        plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two sizes, one actor, briefly")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw a picture (PNG) there")
    options = parser.parse_args(arguments)
    sizes, most, seconds = (SIZES[::3], 1, 0.5) if options.quick else (SIZES, max(ACTORS), 2.0)
    report = Report(PACKAGES, "access_latency", quick=options.quick)
    learning = {size: learning_seconds(size, 20) for size in sizes}
    for size, update in learning.items():
        report.add(f"{size:,} B", "DQN's update", "time", "us", [update * 1e6])
    with tempfile.TemporaryDirectory() as folder:
        paths = {"unix_path": Path(folder) / "socket", "shm_path": Path(folder) / "memory"}
        with remote.ReplayServerProcess(udp_port=0, **paths) as server:
            servers = [Server(address, address) for address in server.addresses]
            measure(report, servers, learning, most, seconds)
        device = f"net_memif0,role=server,socket={folder}/memif,socket-abstract=no,id=0"
        try:
            polls = remote.ReplayServerProcess(dpdk=[*DPDK, f"--vdev={device}"], idle="spin")
        except RuntimeError as error:
            warn(f"memif does not run, and is left out: {error}")
        else:
            with polls:
                servers = [Server(polls.addresses[1], polls.addresses[0])]
                measure(report, servers, learning, most, seconds)
    console = Console()
    report.finish(options.json, console)
    if options.plot is not None:
        draw(report, sizes, most, options.plot)
        console.print(f"wrote {options.plot}", highlight=False, markup=False)


if __name__ == "__main__":
    main()
