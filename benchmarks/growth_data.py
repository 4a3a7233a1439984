"""Growth of tabular training with rows and DPUs, and of datasets and vaults on disk."""

import ctypes
import functools
import gc
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from growth_fit import Case, Curve, Peak, least_seconds, resident
from growth_replay import decades

from accel_rl import datasets, pim, replay, tabular
from accel_rl.types import TabularTransition

STATES, ACTIONS, DPUS, ROWS = 64, 4, 256, 1_000_000
FEW_ROWS, MERGES = 4_000, 50  # of a measurement of merges
UPDATE, CUT, MERGE = "update", "partition", "merge"
IMPORT, SAVE, LOAD, MAP = "from_arrays", "save", "load", "load mapped"
APPEND, STREAM, DRAW = "append", "stream", "sample 256"
LOADED, MAPPED, STREAMED, TRAINED = (
    "peak of load",
    "peak of load mapped and partition",
    "peak of append and stream",
    "peak of partition and training",
)
UPDATES = 20_000_000  # least updates of a measurement
ONCE = 30_000_000  # rows from which a log is partitioned only once
CHUNK = 100_000  # rows that a vault appends, and gives back, at once


class AnonymousPeak:
    """Peak of this process's anonymous memory in a block, above what it held then.

    Unlike `Peak` it leaves out pages of mapped files, which the kernel can drop at any time.
    """

    def __enter__(self) -> "AnonymousPeak":
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # freed pages that stay resident would hide growth
        self._before, self.size, self._ended = resident(field="RssAnon"), 0, threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(0.001):
            self.size = max(self.size, resident(field="RssAnon") - self._before)


def log_of(rows: int) -> TabularTransition:
    """Return random transitions, in the types that a dataset has."""
    random = np.random.default_rng(0)

    def numbers(limit: int) -> np.ndarray:
        return random.integers(0, limit, rows, np.int32)

    reward = random.random(rows, np.float32)
    goes_on = (reward < 0.99).astype(np.float32)
    return TabularTransition(
        numbers(STATES), numbers(ACTIONS), reward, numbers(STATES), goes_on, numbers(ACTIONS)
    )


def training_seconds(chunks: pim.Chunks, passes: int, period: int) -> float:
    """Return the CPU time of a training by Q-learning."""
    schedule = pim.MergeSchedule(passes=passes, period=period)
    rule = tabular.q_learning()

    def run() -> None:
        result = pim.train(chunks, rule=rule, schedule=schedule, machine=None)
        jax.block_until_ready(result.tables)

    return least_seconds(run, 3)


def by_rows(rows: int) -> dict[str, float]:
    """Measure a pass over a log by 256 DPUs."""
    log = log_of(rows)
    peak = Peak()
    for _ in range(2 if rows < ONCE else 1):  # the first compiles
        began = time.process_time()
        chunks = jax.block_until_ready(pim.partition(log, DPUS, STATES, ACTIONS))
        cut = time.process_time() - began
    del log
    passes = 1 + max(2, UPDATES // rows)
    one, many = (training_seconds(chunks, each, each) for each in (1, passes))
    found = {UPDATE: (many - one) / (passes - 1), CUT: cut, TRAINED: peak.size / 1e9}
    return {name: 1e9 * value / rows for name, value in found.items()}


def by_dpus(dpus: int) -> dict[str, float]:
    """Measure updates of a million rows, merged once, and merges of tables of few rows."""
    chunks = pim.partition(log_of(ROWS), dpus, STATES, ACTIONS)
    few, many = (training_seconds(chunks, passes, passes) for passes in (10, 40))
    chunks = pim.partition(log_of(FEW_ROWS), dpus, STATES, ACTIONS)
    rarely, often = (training_seconds(chunks, MERGES, period) for period in (MERGES, 1))
    merge = max((often - rarely) / (MERGES - 1), 0.0)  # below what can be measured
    return {UPDATE: 1e9 * (many - few) / (30 * ROWS), MERGE: 1e6 * merge}


def dataset(rows: int) -> dict[str, float]:
    """Measure import, save and load of a log in episodes of 100 steps."""
    random = np.random.default_rng(0)
    state = random.integers(0, STATES, rows + 1, np.int32)
    action = random.integers(0, ACTIONS, rows, np.int32)
    ends = np.arange(1, rows + 1) % 100 == 0
    reward = np.zeros(rows, np.float32)
    taken: dict[str, float] = {}

    def timed(name: str, call: Any, *arguments: Any) -> Any:
        began = time.process_time()
        result = jax.block_until_ready(call(*arguments))
        taken[name] = 1e9 * (time.process_time() - began) / rows
        return result

    datasets.from_arrays(*(each[:100] for each in (state, action, reward, state, ends)))  # warms up
    made = timed(IMPORT, datasets.from_arrays, state[:-1], action, reward, state[1:], ends)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.npz"
        timed(SAVE, datasets.save, path, made)
        del made, state, action, ends, reward
        peak = Peak()
        kept = timed(LOAD, datasets.load, path)
        assert len(kept) == rows
        most = peak.size
        del kept
        load = functools.partial(datasets.load, mapped=True)
        timed(MAP, load, path)
        with AnonymousPeak() as anonymous:
            mapped = load(path)
            jax.block_until_ready(pim.partition(mapped.transitions, DPUS, STATES, ACTIONS))
        return {**taken, LOADED: most / rows, MAPPED: anonymous.size / rows}


def vault(rows: int) -> dict[str, float]:
    """Measure a vault of items of 24 bytes: append, read in batches, and sample, from disk."""
    random = np.random.default_rng(0)
    example = {"x": np.zeros(5, np.float32), "reward": np.float32(0)}
    items = {
        "x": random.random((CHUNK, 5), np.float32),
        "reward": random.random(CHUNK, np.float32),
    }
    peak = Peak()
    with tempfile.TemporaryDirectory() as folder, replay.Vault(folder, example) as kept:
        began = time.process_time()
        for _ in range(rows // CHUNK):
            kept.append(items)
        appended = time.process_time()
        count = sum(len(batch["reward"]) for batch in kept.batches(CHUNK))
        streamed = time.process_time()
        assert count == rows
        most = peak.size  # before samples, whose chunks tensorstore reads at the same time
        draw = least_seconds(lambda: kept.sample(random, 256), 3)
    return {
        APPEND: 1e9 * (appended - began) / rows,
        STREAM: 1e9 * (streamed - appended) / rows,
        DRAW: draw * 1e3,
        STREAMED: most / 2**20,
    }


def _a_row(*names: str) -> tuple[Curve, ...]:
    return tuple(Curve(name, "ns a row", "O(1)") for name in names)


CASES = (
    Case(
        "rows", "tabular training by rows, 256 DPUs", "rows", decades(5, 8),
        (100_000, 320_000, 1_000_000), by_rows,
        (*_a_row(UPDATE, CUT), Curve(TRAINED, "B a row", "O(1)")), (),
        lambda size: 110.0 * size, 1.5,
    ),
    Case(
        "dpus", "tabular training by DPUs, 1,000,000 rows", "DPUs",
        (1, 4, 16, 64, 256, 1_024, 2_560), (1, 16, 256), by_dpus,
        (*_a_row(UPDATE), Curve(MERGE, "us", "O(n)")),
    ),
    Case(
        "dataset", "dataset on disk", "rows", (*decades(5, 7), 32_000_000),
        (10_000, 32_000, 100_000), dataset,
        (
            *_a_row(IMPORT, SAVE, LOAD, MAP), Curve(LOADED, "B a row", "O(1)"),
            Curve(MAPPED, "B a row", "O(1)"),
        ), (),
        lambda size: 150.0 * size,
    ),
    Case(
        "vault", "vault on disk", "rows", tuple(CHUNK * 4**n for n in range(6)),
        (CHUNK, 2 * CHUNK, 4 * CHUNK), vault,
        (
            *_a_row(APPEND, STREAM), Curve(DRAW, "ms", "O(1)"),
            Curve(STREAMED, "MiB", "O(1)"),
        ),
    ),
)  # fmt: skip
