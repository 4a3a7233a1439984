"""From a dataset and a training to the cost model's workload."""

import dataclasses
import pathlib
import re

import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import datasets, envs, tabular
from accel_rl.pim import cost, modelled
from accel_rl.pim.partition import CODEBOOK, record_bytes
from pim_emu.cost.pipeline import random_cycles
from pim_emu.machine import load_machine

KERNELS = pathlib.Path(__file__).parents[2] / "kernels"
DOC = pathlib.Path(__file__).parents[2] / "docs" / "cost-model.md"
KERNEL = modelled.KernelSettings(
    rule="q_learning",
    numerics="fp32",
    order=tabular.make_order("SEQ"),
    target_block=128,
    tasklets=4,
    passes=2,
    period=1,
    merge="visits",
)


# Two DPUs of 8 rows, blocks of 4, four tasklets. Tasklet 0 owns pairs 0, 1 and 2; 1 owns 3 and 4;
# 2 owns 6; 3 owns 8. The pipeline issues one instruction of a tasklet in 11 cycles, so a block
# takes 11 for each row of its busiest owner.
# DPU 0 holds 0 3 6 8 | 0 3 6 8, in steps of 4: 0 0 3 3 | 6 6 8 8.
# DPU 1 holds 0 1 2 3 | 4 0 1 2, in steps of 4: 0 4 1 0 | 2 1 3 2.
PAIRS = np.array([0, 3, 6, 8, 0, 3, 6, 8, 0, 1, 2, 3, 4, 0, 1, 2], np.int32)


@pytest.mark.parametrize(("order", "busiest"), [("SEQ", 3 + 3), ("RAN", 3 + 3), ("STR", 3 + 3)])
def test_imbalance_is_that_of_the_slowest_dpu(order, busiest):
    state, action = np.divmod(PAIRS, np.int32(3))
    ones = np.ones(len(PAIRS), np.float32)
    load = modelled.Load(state, action, state, ones, num_states=3, num_actions=3, record_bytes=8)
    kernel = dataclasses.replace(KERNEL, order=tabular.make_order(order, 4), target_block=4)
    run = modelled.workload(load_machine(), load, kernel, dpus=2)
    even = 8 / 4  # rows of an owner, were they split evenly
    assert run.imbalance == pytest.approx(busiest / even)
    first = dataclasses.replace(load, state=state[:8], action=action[:8])
    alone = modelled.workload(load_machine(), first, kernel, dpus=1)
    assert alone.imbalance == pytest.approx({"STR": 2 + 2}.get(order, 1 + 1) / even)


def test_load_counts_pairs_and_record_bytes():
    data = datasets.collect(envs.make_mdp("Taxi-v3"), "random", 1000, seed=1)
    load = modelled.load_of(data)
    columns = data.transitions
    np.testing.assert_array_equal(load.pairs(), columns.state * 6 + columns.action)
    assert (load.num_states, load.num_actions, load.record_bytes) == (500, 6, 8)
    run = modelled.workload(load_machine(), load, dataclasses.replace(KERNEL, merge="mean"), dpus=7)
    assert run.rows_per_dpu == cost.split_rows(1000, 7)
    chunks = np.split(load.pairs(), np.cumsum(run.rows_per_dpu)[:-1])
    assert run.visited == max(len(set(chunk.tolist())) for chunk in chunks)
    assert not run.weighted_merge
    assert modelled.workload(load_machine(), load, KERNEL, dpus=7).weighted_merge


@pytest.mark.parametrize(("distinct", "size"), [(256, 8), (257, 16)])
def test_long_records_of_many_rewards(distinct, size):
    """As the kernels' own limit says; fixed point counts no fewer."""
    header = (KERNELS / "upmem" / "interface.h").read_text()
    assert int(re.search(r"ARL_CODEBOOK = (\d+)", header)[1]) == CODEBOOK
    data = datasets.collect(envs.make_mdp("Taxi-v3"), "random", 1000, seed=1)
    rewards = jnp.arange(1000, dtype=jnp.float32) % distinct
    rows = dataclasses.replace(data.transitions, reward=rewards)
    assert modelled.load_of(dataclasses.replace(data, transitions=rows)).record_bytes == size
    for given, wanted in ((rewards, size), (rewards[:5], 8)):
        assert record_bytes(65_536, 4, given) == wanted
        assert record_bytes(65_540, 4, given) == 16
        assert record_bytes(65_536, 257, given) == 16


def test_the_document_holds_the_imbalances():
    text = DOC.read_text(encoding="utf-8")
    loads = [
        modelled.load_of(datasets.collect(envs.make_mdp(name), "random", 60_000, seed=0))
        for name in ("FrozenLake-v1", "Taxi-v3")
    ]
    for tasklets in (11, 12, 13, 16, 24):
        own = [cost.ownership_imbalance(load_machine(), x.pairs(), tasklets, 128) for x in loads]
        expected = random_cycles(128, tasklets, 11) / (128 * max(1, 11 / tasklets))
        row = " | ".join(f"{ratio:.2f}" for ratio in (*own, expected))
        assert f"| {tasklets} | {row} |" in text


def test_scaling_is_the_model_at_each_number_of_dpus():
    data = datasets.collect(envs.make_mdp("FrozenLake-v1"), "random", 4000, seed=1)
    load = modelled.load_of(data)
    seconds = modelled.scaling(load, KERNEL, (2, 8))
    for position, dpus in enumerate((2, 8)):
        run = modelled.workload(load_machine(), load, KERNEL, dpus)
        whole = cost.modelled_seconds(load_machine(), run)
        assert seconds["cycles"][position] == whole.kernel_cycles
        assert seconds["total"][position] == whole.total
