"""Logs on the host: the same chunks as of jax arrays, in less memory, and streamed training."""

import dataclasses
import hashlib
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from kernels_present import needs_kernels

from accel_rl import datasets, pim, tabular
from accel_rl.pim.partition import record_bytes
from accel_rl.types import TabularTransition

STATES, ACTIONS, DPUS = 64, 4, 256
ROWS = 4_000_003  # 112 MB in a file

# Limits the anonymous memory of a process, after a first partition has compiled and made threads.
LIMITED = """
import hashlib, resource, sys
import jax, numpy as np
from accel_rl import datasets, pim, tabular
from accel_rl.experiment import tabular_run

small, log, how, limit = sys.argv[1:]
setting = {"rule": tabular.q_learning(), "schedule": pim.MergeSchedule(2, 2)}

def digest(path):
    data = datasets.load(path, mapped=how != "read")
    log = data.transitions
    if how == "streamed":  # with what the command asks for beside it
        kernel = tabular_run.TabularSettings().kernel
        pim.modelled.workload(pim.load_machine(), pim.modelled.load_of(data), kernel, 256)
        tabular_run.describe(data)
        found = pim.train_streamed(log, 256, 64, 4, group_size=16, **setting).tables
    else:
        found = pim.partition(log, 256, 64, 4, "owner" if how == "owner" else "time")
    result = hashlib.sha256()
    for column in jax.tree.leaves(found):
        result.update(np.asarray(column))
    return result.hexdigest()

digest(small)
now = next(line for line in open("/proc/self/status") if line.startswith("VmData"))
most = 1024 * int(now.split()[1]) + int(limit)
resource.setrlimit(resource.RLIMIT_DATA, (most, most))
print(digest(log))
"""


def log_of(rows):
    random = np.random.default_rng(0)

    def numbers(limit):
        return random.integers(0, limit, rows, np.int32)

    columns = TabularTransition(
        numbers(STATES),
        numbers(ACTIONS),
        numbers(200).astype(np.float32) / np.float32(7),
        numbers(STATES),
        np.ones(rows, np.float32),
        numbers(ACTIONS),
    )
    info = datasets.DatasetInfo("random", STATES, ACTIONS, "random")
    return datasets.TabularDataset(columns, np.arange(rows, dtype=np.int32), info)


@pytest.mark.parametrize("by", ["time", "owner"])
@pytest.mark.parametrize("dpus", [1, 7, 10, 60, 64])
def test_columns_of_numpy_and_of_jax_give_the_same_chunks(by, dpus):
    host = log_of(70).transitions
    found, expected = (
        pim.partition(columns, dpus, STATES, ACTIONS, by)
        for columns in (host, jax.tree.map(jax.numpy.asarray, host))
    )
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(ours, jax.Array)
        np.testing.assert_array_equal(ours, theirs)


def test_a_numpy_column_beside_traced_ones():
    log = log_of(70).transitions

    @jax.jit
    def cut(state):
        columns = dataclasses.replace(log, state=state)
        return pim.partition(columns, 7, STATES, ACTIONS, "owner").transitions

    expected = pim.partition(log, 7, STATES, ACTIONS, "owner").transitions
    jax.tree.map(np.testing.assert_array_equal, cut(log.state), expected)


@pytest.mark.parametrize(("distinct", "expected"), [(1, 8), (256, 8), (257, 16)])
@pytest.mark.parametrize("block", [7, 256, 1 << 20])
def test_distinct_rewards_are_counted_over_all_blocks(distinct, expected, block, monkeypatch):
    # By the module's name, because `pim.partition` is the function.
    monkeypatch.setattr(sys.modules["accel_rl.pim.partition"], "_BLOCK", block)
    rewards = np.resize(np.arange(distinct, dtype=np.float32), 600)
    assert record_bytes(STATES * ACTIONS, ACTIONS, rewards) == expected


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for name, rows in (("small", 1_000), ("large", ROWS)):
        datasets.save(folder / name, log_of(rows))
    return folder


def limited(logs, how, bytes_a_row):
    """Partition or train on the large log in a process of its own."""
    words = [logs / "small", logs / "large", how, bytes_a_row * ROWS]
    return subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, words)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )


def digest(result):
    found = hashlib.sha256()
    for column in jax.tree.leaves(result):
        found.update(np.asarray(column))
    return found.hexdigest()


# Chunks have 24 bytes a row. By owner the order has 8, and one sorted column 4.
@pytest.mark.parametrize(
    ("by", "bytes_a_row"), [("time", 28), pytest.param("owner", 42, marks=pytest.mark.long)]
)
def test_a_mapped_log_takes_little_more_than_its_chunks(logs, by, bytes_a_row):
    done = limited(logs, by, bytes_a_row)
    assert done.returncode == 0, done.stderr
    log = datasets.load(logs / "large").transitions
    assert done.stdout.strip() == digest(pim.partition(log, DPUS, STATES, ACTIONS, by))


@pytest.mark.long
def test_a_log_that_is_read_takes_more(logs):
    done = limited(logs, "read", 28)
    assert "Out of memory" in done.stderr or "MemoryError" in done.stderr


@needs_kernels
def test_a_streamed_training_takes_less_than_half_of_the_log(logs):
    done = limited(logs, "streamed", 12)
    assert done.returncode == 0, done.stderr
    chunks = pim.partition(datasets.load(logs / "large").transitions, DPUS, STATES, ACTIONS)
    setting = {"rule": tabular.q_learning(), "schedule": pim.MergeSchedule(2, 2)}
    assert done.stdout.strip() == digest(pim.train(chunks, **setting).tables)
