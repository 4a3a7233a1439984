"""Instructions, pipeline and MRAM in the cost model, by hand and by brute force."""

import itertools
import math
import pathlib
import subprocess

import numpy as np
import pytest
from cost_workloads import MACHINE, RULES, occupied, workload
from hypothesis import given, settings
from hypothesis import strategies as st
from sdk_present import needs_sdk

from accel_rl.pim import cost
from accel_rl.pim.cost import kernel, mram
from pim_emu.cost import pipeline

ROOT = pathlib.Path(__file__).parents[2]


# --- Instructions


@pytest.mark.parametrize(
    ("numerics", "frozen_lake", "taxi"),
    [("fp32", 543, 619), ("int32_scaled", 92, 105), ("int32_pow2", 44, 54)],
)
def test_q_learning_takes_the_measured_instructions(numerics, frozen_lake, taxi):
    assert cost.update_instructions("q_learning", numerics, 4).total == pytest.approx(frozen_lake)
    assert cost.update_instructions("q_learning", numerics, 6).total == pytest.approx(taxi)
    middle = cost.update_instructions("q_learning", numerics, 5).total
    assert middle == pytest.approx((frozen_lake + taxi) / 2)


@pytest.mark.parametrize(
    ("numerics", "millions"),
    [("fp32", (0.64, 0.57)), ("int32_scaled", (3.8, 3.3)), ("int32_pow2", (7.9, 6.5))],
)
def test_peak_updates_of_a_dpu(numerics, millions):
    for num_actions, expected in zip((4, 6), millions, strict=True):
        instructions = cost.update_instructions("q_learning", numerics, num_actions).total
        for tasklets in (11, 16, 24):
            peak = cost.peak_updates(MACHINE, instructions, tasklets)
            assert peak / 1e6 == pytest.approx(expected, abs=0.06)  # the table has two digits
        assert cost.peak_updates(MACHINE, instructions, 1) == pytest.approx(peak / 11)


def test_derived_rules_differ_from_q_learning_by_their_operations():
    """FP32 and 4 actions by hand: base 391, entry 38, add 71, product 183, draw 46."""
    expected = {
        "sarsa": 391 + 3,
        "sarsa_epsilon_greedy": 391 + 4 * 38 + 2 * 46 + 3,
        "expected_sarsa": 391 + 4 * 38 + 2 * 183 + 2 * 71 + 4 * 71,
        "double_q_learning": 391 + 4 * 38 + 2 * 46 + 3 + 4 * 1,
    }
    for rule, instructions in expected.items():
        assert cost.update_instructions(rule, "fp32", 4).total == pytest.approx(instructions)
    # The target of Q-learning has 1 of its 2 products and 1 of its 3 additions.
    target = 391 * (183 + 71) / (2 * 183 + 3 * 71) + 4 * 38
    assert cost.update_instructions("q_learning", "fp32", 4).target == pytest.approx(target)


def test_arithmetic_operations():
    """Q-learning with 4 actions: 3 comparisons, 2 products, 3 additions."""
    assert cost.arithmetic_operations("q_learning", 4) == 8
    assert cost.arithmetic_operations("sarsa", 4) == 5
    assert cost.arithmetic_operations("expected_sarsa", 4) == 5 + 2 * 3 + 4


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("numerics", cost.NUMERICS)
def test_more_actions_never_cost_less(rule, numerics):
    counts = [cost.update_instructions(rule, numerics, n) for n in range(1, 9)]
    assert all(count.target > 0 and count.apply > 0 for count in counts)
    assert all(a.total <= b.total for a, b in itertools.pairwise(counts))


# --- Pipeline


def simulated_cycles(loads, reissue):
    """A dispatcher, cycle by cycle: the ready tasklet that has waited longest issues."""
    left = list(loads)
    ready = [0] * len(left)
    last = [-1] * len(left)
    cycle = 0
    while any(left):
        waiting = [i for i in range(len(left)) if left[i] and ready[i] <= cycle]
        if waiting:
            chosen = min(waiting, key=lambda i: last[i])
            left[chosen] -= 1
            last[chosen], ready[chosen] = cycle, cycle + reissue
        cycle += 1
    return cycle


@given(st.lists(st.integers(0, 40), min_size=1, max_size=24))
@settings(max_examples=60)
def test_round_robin_cycles_are_those_of_a_dispatcher(loads):
    modelled = pipeline.round_robin_cycles(np.array(loads), 11)
    assert modelled >= max(sum(loads), 11 * max(loads))
    # A dispatcher need not wait out the last round, and its rounds overlap where tasklets finish.
    assert abs(modelled - simulated_cycles(loads, 11)) <= 11 + len(loads)


def test_one_tasklet_issues_every_eleventh_cycle_and_eleven_fill_the_pipeline():
    assert pipeline.round_robin_cycles(np.array([100]), 11) == 1100
    for tasklets in range(1, 12):
        assert pipeline.round_robin_cycles(np.full(tasklets, 100), 11) == 1100
    for tasklets in range(11, 25):
        assert pipeline.round_robin_cycles(np.full(tasklets, 100), 11) == 100 * tasklets


def shares(items, tasklets):
    """Rows of each tasklet: ceil(items / t) neighbours, until there are none left."""
    most = -(-items // tasklets)
    return np.array([max(0, min(most, items - k * most)) for k in range(tasklets)])


@given(st.integers(0, 400), st.integers(1, 24))
def test_rows_are_shared_in_runs_of_neighbours(items, tasklets):
    expected = pipeline.round_robin_cycles(shares(items, tasklets), 11)
    assert pipeline.share_cycles(items, tasklets, 11) == expected


@needs_sdk
def test_shares_and_owners_are_those_of_the_kernel(tmp_path):
    source = r"""
        #include <stdio.h>
        #include "share.h"
        int main(void) {
          for (uint32_t t = 1; t <= 24; ++t)
            for (uint32_t e = 0; e < 1000; ++e) printf("%u\n", arl_owner(65 * e, t));
          for (uint32_t t = 1; t <= 24; ++t)
            for (uint32_t k = 0; k < t; ++k) {
              const arl_span share = arl_share_of(100, k, t);
              printf("%u\n", share.end - share.first);
            }
        }"""
    options = ["-DARL_NUMERICS=2", f"-I{ROOT / 'kernels' / 'common'}", "-xc", "-"]
    program = tmp_path / "owners"
    subprocess.run(["gcc", *options, "-o", program], input=source, text=True, check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    tasklets = range(1, 25)
    owned = [kernel.owners(65 * np.arange(1000), t) for t in tasklets]
    expected = np.concatenate(owned + [shares(100, t) for t in tasklets])
    np.testing.assert_array_equal(np.array(printed.split(), int), expected)


@pytest.mark.parametrize(("items", "tasklets", "reissue"), [(1, 3, 11), (5, 3, 2), (6, 4, 1)])
def test_expected_cycles_of_random_ownership_by_enumeration(items, tasklets, reissue):
    owners = itertools.product(range(tasklets), repeat=items)
    loads = [np.bincount(owner, minlength=tasklets) for owner in owners]
    expected = pipeline.round_robin_cycles(np.array(loads), reissue) / len(loads)
    assert pipeline.random_cycles(items, tasklets, reissue) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("items", "tasklets"), [(128, 16), (100, 11), (512, 24), (7, 24)])
def test_expected_cycles_of_random_ownership_by_sampling(items, tasklets):
    loads = np.random.default_rng(0).multinomial(items, [1 / tasklets] * tasklets, size=20_000)
    samples = np.array([pipeline.round_robin_cycles(load, 11) for load in loads[:4000]])
    error = samples.std() / math.sqrt(len(samples))
    # Five standard errors: a false alarm in 1.7 million.
    assert abs(pipeline.random_cycles(items, tasklets, 11) - samples.mean()) < 5 * error


def test_ownership_imbalance_of_given_rows():
    owners = kernel.owners(np.arange(256), 16)
    even = np.concatenate([np.flatnonzero(owners == k)[:8] for k in range(16)])
    assert cost.ownership_imbalance(MACHINE, even, 16, 128) == 1.0
    # All rows of one pair: one tasklet applies them all, at an eleventh of the pipeline.
    assert cost.ownership_imbalance(MACHINE, np.zeros(128, int), 16, 128) == 11
    # Two blocks, the second short: cycles 8 * 16 and 8 * 11 over 128 + 8 rows.
    mixed = np.concatenate([even, np.zeros(8, int)])
    expected = (8 * 16 + 8 * 11) / 136
    assert cost.ownership_imbalance(MACHINE, mixed, 16, 128) == pytest.approx(expected)
    # With a single tasklet there is nothing to balance.
    assert cost.ownership_imbalance(MACHINE, mixed, 1, 128) == 1.0


# --- MRAM


def test_dma_takes_alpha_and_half_a_cycle_per_byte():
    assert mram.dma_cycles(MACHINE, 1024) == 589
    assert mram.dma_cycles(MACHINE, 8) == 81
    assert mram.dma_cycles(MACHINE, 8, write=True) == 65
    assert mram.dma_cycles(MACHINE, 2056) == 2 * 77 + 1028  # more than one transfer carries
    assert mram.dma_cycles(MACHINE, 0) == 0


def test_tasklets_that_read_their_shares_wait_for_each_other():
    def read(rows=128, instructions=50, **fields):
        return mram.read_cycles(MACHINE, workload(**fields), rows, instructions)

    # 16 shares of 8 rows: the last waits for 15 others.
    assert read() == pytest.approx(15 * occupied(64) + 77 + 32)
    assert read(17) == pytest.approx(8 * occupied(16) + 77 + 8)  # 9 shares, of 2 rows but the last
    assert read(tasklets=1) == 77 + 512
    # The span from a share's first row to its last: 29 rows in steps of 4.
    assert read(order="STR", stride=4) == pytest.approx(15 * occupied(232) + 77 + 116)
    # Buffers are made for records of 8 bytes: wide ones come in two parts.
    assert read(record_bytes=16) == pytest.approx(2 * (15 * occupied(64) + 77 + 32))
    # More than one transfer carries: 1,024 rows of a tasklet.
    assert read(1024, tasklets=1, target_block=1024) == 4 * (77 + 1024)
    # One tasklet reads blocks of 128 rows for all.
    assert read(order="RAN") == 77 + 512
    assert read(64, order="RAN", target_block=64) == (77 + 512) / 2
    assert read(0) == 0


def test_records_read_one_by_one_are_waited_for_where_nothing_hides_it():
    def read(instructions, **fields):
        return mram.read_cycles(MACHINE, workload(**fields), 128, instructions)

    for fields in ({"order": "RAN_REPLACEMENT"}, {"order": "STR", "stride": 9}):
        assert read(50, tasklets=1, **fields) == 128 * 81
        # 8 rounds: a tasklet's 50 instructions and latency take 631 cycles, 4 tasklets' 550.
        assert read(50, tasklets=4, **fields) == 32 * 81
        # 16 tasklets compute for 800 cycles, which is longer; without work the engine decides.
        assert read(50, **fields) == 0
        assert read(0, **fields) == pytest.approx(8 * 16 * occupied(8))
    assert read(50, order="STR", stride=8) > 0


def test_buffers_hold_the_span_of_a_share():
    def buffer(**fields):
        return mram.buffer_bytes(MACHINE, workload(**fields))

    assert buffer() == buffer(record_bytes=16) == 64
    assert buffer(target_block=100) == 56  # 7 rows
    assert buffer(target_block=8) == 16  # a wide record must fit
    assert buffer(tasklets=1, target_block=1024) == buffer(target_block=1) == 2048
    assert buffer(order="STR", stride=8) == 512
    assert buffer(order="STR", stride=9) == buffer(order="RAN_REPLACEMENT") == 16
    # Wide blocks of 128 rows: one after the other, or all that two target blocks touch.
    assert buffer(order="RAN", target_block=1) == 2048
    assert buffer(order="RAN") == 4 * 2048
