"""The cost model of a kernel against hand computations and the emulator."""

import dataclasses
import pathlib
import re

import pytest
from cost_workloads import MACHINE, occupied, workload

from accel_rl.pim import cost
from accel_rl.pim.cost import kernel, mram


def test_a_block_by_hand():
    """Balanced, 16 tasklets, 128 rows, int32_pow2, 4 actions."""
    update = cost.update_instructions("q_learning", "int32_pow2", 4)
    block = kernel.block_cycles(MACHINE, workload(numerics="int32_pow2", imbalance=1.0), 128)
    assert block.target == pytest.approx(128 * (update.target + 11 + 16))
    assert block.apply == pytest.approx(128 * (update.apply + 9) + 16 * 16 * 4)
    assert block.share == 16 * 84
    assert block.barrier == 2 * 16 * 18
    assert block.mram_wait == pytest.approx(15 * occupied(64) + 109)
    assert block.random == block.tables == 0
    parts = (block.target, block.apply, block.share, block.barrier, block.mram_wait)
    assert block.total == pytest.approx(sum(parts))


def test_a_barrier_costs_what_the_emulator_charges():
    costs = (
        pathlib.Path(__file__).parents[2] / "pim_emu" / "native" / "device" / "runtime" / "costs.h"
    ).read_text()
    charged = re.search(r"#define COST_BARRIER (\d+)", costs)
    assert cost.load_calibration()["barrier"] == int(charged[1])


def test_a_strictly_sequential_kernel_is_the_measured_update_on_one_tasklet():
    reads = 5 * (77 + 1024)  # a tasklet waits for its own transfers
    for tasklets in (1, 16):  # more can do nothing
        w = workload(target_block=1, tasklets=tasklets)
        expected = 1280 * 543 * 11 + reads
        assert kernel.pass_cycles(MACHINE, w, 1280).total == pytest.approx(expected)


def test_one_tasklet_shares_with_itself():
    update = cost.update_instructions("q_learning", "fp32", 4)
    block = kernel.block_cycles(MACHINE, workload(tasklets=1), 128)
    instructions = 128 * (update.total + 11 + 16 + 9) + 4 + 84 + 2 * 18
    assert block.total == pytest.approx(11 * instructions + 77 + 512)


def test_full_blocks_cost_in_proportion_and_a_partial_one_its_own_rows():
    w = workload()
    block = kernel.block_cycles(MACHINE, w, 128).total
    assert kernel.pass_cycles(MACHINE, w, 128 * 10).total == pytest.approx(10 * block)
    short = kernel.block_cycles(MACHINE, w, 5).total
    assert kernel.pass_cycles(MACHINE, w, 128 * 10 + 5).total == pytest.approx(10 * block + short)
    assert short < block / 6
    assert kernel.pass_cycles(MACHINE, w, 0).total == 0


def test_random_order_pays_for_its_permutation():
    rows = 128 * 200
    swaps = 127 + 199
    random = kernel.pass_cycles(MACHINE, workload(order="RAN"), rows)
    straight = kernel.pass_cycles(MACHINE, workload(order="SEQ"), rows)
    # All tasklets draw, which fills the pipeline; one swaps the blocks, more than a block has rows.
    assert random.random == 65 * swaps + 16 * 110 + 11 * 17 * 200
    assert random.barrier - straight.barrier == 3 * 16 * 18
    assert random.target - straight.target == pytest.approx(rows * 3)  # a lookup for each row
    assert random.share - straight.share == 200 * 16 * 50
    alone = kernel.pass_cycles(MACHINE, workload(order="RAN", tasklets=1), rows)
    assert alone.random == 11 * (65 * swaps + 17 * (128 + 200))  # no draws of others


def test_tasklets_jump_over_the_draws_of_others():
    for fields, jumps in (
        ({}, 0),
        ({"order": "RAN_REPLACEMENT"}, 1),
        ({"rule": "double_q_learning"}, 1),
        ({"rule": "sarsa_epsilon_greedy", "order": "RAN_REPLACEMENT"}, 2),
    ):
        w = workload(**fields)
        assert kernel.block_cycles(MACHINE, w, 128).random == jumps * 16 * 110


def test_few_visited_entries_are_listed():
    def listed(visited=None, rows=(10_000,), **fields):
        return workload(rows, 10, 10, visited=visited, **fields).listed

    assert [listed(n) for n in (1, 4, 5, 48, 49, 100)] == [4, 4, 8, 48, 0, 0]  # up to half of 100
    assert [listed(rows=(n, 1)) for n in (3, 30, 49, 10_000)] == [4, 32, 0, 0]  # a row each
    assert listed(rows=(3, 1), visited=2) == 4
    w = workload((30,), 10, 10, rule="double_q_learning", visited=21)
    assert (w.listed, w.list_bytes, w.pulled_bytes, w.table_bytes) == (24, 48, 192, 800)
    dense = dataclasses.replace(w, rows_per_dpu=(10_000,), visited=99)
    assert (dense.listed, dense.list_bytes, dense.pulled_bytes) == (0, 0, 800)
    for fields, most in (({"rows": (7, 3)}, 7), ({"rows": (500,)}, 64)):
        for visited in (0, most + 1):
            with pytest.raises(ValueError, match=f"visited must be .* {most}, got {visited}"):
                workload(**fields, visited=visited)


def test_listed_entries_are_moved_in_pieces_by_hand():
    # 40 pieces of 32 entries: 16 tasklets take 3, 3, ... and 2; all read at the same time.
    w = workload((10_000,), 500, 6, visited=1280)
    instructions = 26 + 32 * 4
    rounds = 2 * 16 + 11  # of an instruction of each piece: 8 tasklets have a third one
    reads = (15 + 15 + 7) * occupied(64) + 3 * (77 + 32)
    back = instructions * rounds + reads + 3 * (61 + 64)
    assert mram.table_cycles(MACHINE, w) == pytest.approx(6 * 77 + 6000 + back)
    # Of two tables, by one tasklet: 5 pieces, the last of 4 entries, read once and written twice.
    w = workload((10_000,), 500, 6, rule="double_q_learning", tasklets=1, visited=132)
    back = 11 * 2 * (5 * 26 + 132 * 4) + 5 * (77 + 32 + 2 * (61 + 64))
    assert mram.table_cycles(MACHINE, w) == pytest.approx(12 * 77 + 12_000 + back)


def test_launches_move_the_tables_between_mram_and_wram():
    w = workload(num_states=500, num_actions=6, passes=10, period=4)
    assert w.launches == 3
    expected = 3 * (6 * 77 + 6000 + 6 * 61 + 6000)  # 12,000 bytes each way
    run = kernel.run_cycles(MACHINE, w)
    assert run.tables == expected
    passes = 10 * kernel.pass_cycles(MACHINE, w, 10_000).barrier
    assert run.barrier == pytest.approx(passes + 3 * 3 * 16 * 18)
