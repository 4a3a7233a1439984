"""The cost model by owner: counts against loops over a log, seconds and cycles by hand."""

import dataclasses

import numpy as np
import pytest

from accel_rl import datasets, envs, pim, tabular
from accel_rl.pim import cost, modelled
from accel_rl.pim.cost import kernel, lanes
from accel_rl.tabular import owners
from pim_emu.cost import transfers
from pim_emu.machine import load_machine

MACHINE = load_machine()
EXCHANGE = cost.OwnerExchange(runs=20, needed=6, all_runs=2_000)


def workload(rows=(2_560,), num_states=16, num_actions=4, owner=EXCHANGE, **fields):
    return cost.DpuWorkload(tuple(rows), num_states, num_actions, owner=owner, **fields)


# --- Counts in a log


def slices(rows, parts):
    """Rows of each part: the first `rows % parts` have one more."""
    return [rows // parts + (k < rows % parts) for k in range(parts)]


def counted(entries, next_rows, dpus, num_lanes):
    """The exchange, row by row."""
    order = sorted(range(len(entries)), key=lambda row: entries[row])  # stable
    runs, needed, at = [], [], 0
    for rows in slices(len(entries), dpus):
        of_dpu = 0
        needed.append(len({next_rows[row] for row in order[at : at + rows]}))
        for length in slices(rows, num_lanes):
            of_dpu += len({entries[row] for row in order[at : at + length]})
            at += length
        runs.append(of_dpu)
    return cost.OwnerExchange(max(runs), max(needed), sum(runs), num_lanes)


@pytest.mark.parametrize(("rows", "dpus", "num_lanes"), [(200, 7, 4), (50, 9, 16), (64, 1, 3)])
@pytest.mark.parametrize("num_entries", [1, 5, 100])
def test_exchanges_are_those_of_the_rows(rows, dpus, num_lanes, num_entries):
    draw = np.random.default_rng(rows + num_entries)
    entries, next_rows = draw.integers(num_entries, size=rows), draw.integers(30, size=rows)
    log = cost.sort_log(entries, next_rows)
    assert log.exchange(dpus, num_lanes) == counted(entries, next_rows, dpus, num_lanes)


def test_rows_of_an_entry_keep_their_order():
    entries = np.array([70_000, 3, 70_000, 3, 1])  # too many for 16 bits
    for given in (entries, np.minimum(entries, 9)):
        log = cost.sort_log(given, np.arange(5))
        assert log.next_rows.tolist() == [4, 1, 3, 0, 2]
        assert log.entries.tolist() == sorted(given)


def test_a_dataset_s_exchange_counts_the_end_of_an_episode_as_a_next_state():
    data = datasets.collect(envs.make_mdp("FrozenLake-v1"), "random", 3_000, seed=1)
    columns = data.transitions
    load = modelled.load_of(data)
    settings = modelled.KernelSettings(
        rule="q_learning", numerics="fp32", order=tabular.make_order("SEQ"), target_block=128,
        tasklets=16, passes=3, period=1, merge="visits", lanes=8,
    )  # fmt: skip
    run = modelled.workload(MACHINE, load, settings, dpus=10)
    ends = np.asarray(columns.discount) == 0
    assert 0 < ends.sum() < len(ends)
    next_rows = np.where(ends, 16, columns.next_state).tolist()
    entries = np.asarray(columns.state * 4 + columns.action).tolist()
    assert run.owner == counted(entries, next_rows, 10, 8)
    assert run.exchange.runs == pim.partition(columns, 10, 16, 4, by="owner", lanes=8).runs
    assert (run.imbalance, run.record_bytes) == (None, 8)
    # Scaling counts again for each number of DPUs.
    seconds = modelled.scaling(load, settings, (10, 40), MACHINE)
    points = cost.strong_scaling(MACHINE, run, (10, 40), log=load.sorted)
    assert seconds["total"] == [point.modelled.total for point in points]
    assert seconds["cycles"] == [point.modelled.kernel_cycles for point in points]


# --- Cycles


def constants(*names):
    calibration = cost.load_calibration()
    return [calibration[name] for name in names]


def occupied(size):
    """Cycles of the engine: 8 bytes as in random reads at 73 MB/s, then half a cycle a byte."""
    return 8 * 350e6 / 73e6 + (size - 8) / 2


@pytest.mark.parametrize("numerics", cost.NUMERICS)
def test_a_pass_by_hand(numerics):
    """16 lanes of 160 rows on 16 tasklets: each issues in turn, and a buffer holds a lane."""
    update, lane, block, run = constants(
        f"owner_{numerics}_update", "owner_lane", "owner_block", "owner_run"
    )
    found = kernel.pass_cycles(MACHINE, workload(numerics=numerics), 2_560)
    assert found.apply == 2_560 * update
    # Four runs beyond the lanes' first ones, on four tasklets, an eleventh of the pipeline each.
    assert found.share == 16 * (lane + block) + 11 * run
    assert found.target == found.barrier == found.random == found.tables == found.mram_wait == 0


def test_lanes_are_dealt_to_tasklets_in_turn():
    update, lane, block, _ = constants(
        "owner_int32_pow2_update", "owner_lane", "owner_block", "owner_run"
    )
    no_more = dataclasses.replace(EXCHANGE, runs=16)

    def cycles(rows, tasklets):
        w = workload(numerics="int32_pow2", tasklets=tasklets, owner=no_more)
        return kernel.pass_cycles(MACHINE, w, rows)

    # 11 tasklets: five have a second lane, while six wait. 24: eight have none.
    assert cycles(2_560, 11).apply == (11 + 11) * 160 * update
    assert cycles(2_560, 24).apply == 16 * 160 * update
    assert cycles(2_560, 1).apply == 11 * 2_560 * update
    # 35 rows: three lanes have a third row, and run alone.
    assert cycles(35, 16).apply == (2 * 16 + 11) * update
    # Three rows: thirteen lanes have none, and cost nothing.
    assert cycles(3, 16).total == 11 * (update + lane + block)
    assert cycles(0, 16).total == 0


def test_a_lane_that_its_buffer_does_not_hold_is_read_in_every_pass():
    w = workload((16 * 300,), numerics="int32_pow2")
    assert lanes.lane_buffer_bytes(MACHINE, w) == 2048  # 256 rows
    assert kernel.pass_cycles(MACHINE, w, 16 * 256).mram_wait == 0
    # 16 tasklets compute for 16 x 30 cycles a row, in which one that waits 77 + 4 a row is ready.
    assert kernel.pass_cycles(MACHINE, w, 16 * 300).mram_wait == 0
    (block,) = constants("owner_block")
    short, long = (kernel.pass_cycles(MACHINE, w, rows).share for rows in (16 * 256, 16 * 300))
    assert long - short == 16 * block
    # One tasklet waits for its reads: two of each of 16 lanes are those of its longest.
    alone = kernel.pass_cycles(MACHINE, dataclasses.replace(w, tasklets=11), 16 * 300)
    assert alone.mram_wait == (77 + 1024) + (77 + 176)


def test_a_pass_in_ran_by_hand():
    row, run, lane = constants("owner_row_in_ran", "owner_run_in_ran", "owner_lane_in_ran")
    block, plain_lane = constants("owner_block", "owner_lane")
    seq, ran = (workload(numerics="int32_pow2", order=order) for order in ("SEQ", "RAN"))
    plain, found = (kernel.pass_cycles(MACHINE, w, 2_560) for w in (seq, ran))
    assert found.apply - plain.apply == 2_560 * row
    # 16 lanes with a run each, and four runs more on four tasklets.
    assert found.share - plain.share == 16 * (run + lane) + 11 * run
    assert ran.chunk_bytes - seq.chunk_bytes == 20 * 8  # heads
    # 255 rows and a head fill the buffer, of lanes that have a run each.
    one = dataclasses.replace(EXCHANGE, runs=16)
    rows = [16 * n for n in (255, 256)]
    held, not_held = (
        kernel.pass_cycles(MACHINE, workload((n,), owner=one, order="RAN"), n) for n in rows
    )
    assert not_held.share - held.share == 16 * 2 * block
    assert held.share == 16 * (run + lane + block + plain_lane)


def test_buffers_take_what_wram_leaves():
    def buffer(needed, **fields):
        exchange = dataclasses.replace(EXCHANGE, needed=needed)
        return lanes.lane_buffer_bytes(MACHINE, workload(owner=exchange, **fields))

    assert buffer(6) == buffer(6, tasklets=1) == 2048
    # 65,536 less 12,288 of stacks, 1,024, 256 of lanes, 80 of runs and 32,000 of values.
    assert buffer(8_000) == 1024
    assert buffer(10_000) == 512


def test_a_launch_by_hand():
    launch, alone, barrier = constants("owner_launch", "owner_alone", "barrier")
    found = kernel.launch_cycles(MACHINE, workload())
    assert found.share == 16 * launch + 11 * alone
    assert found.barrier == 3 * 16 * barrier
    # 20 values of runs come with 6 of next states, and go back alone.
    assert found.tables == 77 + (80 + 24) / 2 + 61 + 80 / 2
    # All tasklets read their lane of 160 rows at once.
    assert found.mram_wait == pytest.approx(15 * occupied(1280) + 77 + 640)
    w = workload(passes=10, period=4)
    passes = kernel.pass_cycles(MACHINE, w, 2_560) * 10
    assert kernel.run_cycles(MACHINE, w) == passes + found * 3


def test_random_choices_are_priced():
    choice, plain = constants("owner_choice", "owner_fp32_update")
    for rule, more in (
        ("q_learning", 0),
        ("sarsa", 0),
        ("expected_sarsa", 0),
        ("sarsa_epsilon_greedy", choice),
        ("double_q_learning", choice),
    ):
        assert cost.owner_instructions(rule, "fp32") == plain + more


# --- Seconds


@pytest.mark.parametrize(
    ("rule", "columns", "tables"),
    [
        ("q_learning", 1, 1),
        ("expected_sarsa", 1, 1),
        ("sarsa", 4, 1),
        ("sarsa_epsilon_greedy", 5, 1),
        ("double_q_learning", 2, 2),
    ],
)
def test_bytes_of_an_exchange(rule, columns, tables):
    w = workload(rule=rule, owner=cost.OwnerExchange(runs=17, needed=7, all_runs=17))
    assert w.columns == columns == owners.columns(tabular.make_rule(rule, tabular.fp32()), 4)
    assert w.pulled_bytes == {1: 72, 2: 136}[tables]  # 17 values of 4 bytes each, in eights
    assert w.pushed_bytes == w.pulled_bytes + -(-7 * columns * 4 // 8) * 8


def test_the_four_parts_by_hand():
    w = workload((2_500,) * 128, passes=100, period=50, num_states=500, num_actions=6)
    result = cost.modelled_seconds(MACHINE, w)
    pull, push = 128 * 80 / 4.74e9, 128 * 104 / 6.68e9
    merge = (2_000 * (2 * 4 + 4) + 2 * 12_000) / 15e9
    # 6 values of next states and 20 of runs, read and written, and an index of each.
    gather = (12_000 + 501 * 4 + 128 * 4 * (6 * 3 + 20 * 3)) / 15e9
    detail = result.detail
    assert detail["records"] == pytest.approx(128 * 20_000 / 6.68e9)
    assert detail["lanes"] == pytest.approx(128 * 256 / 6.68e9)
    assert detail["parameters"] == pytest.approx(128 * 40 / 16.88e9)
    assert detail["first_gather"] == pytest.approx(gather)
    assert detail["first_push"] == pytest.approx(push)
    assert result.inter_pim == pytest.approx(pull + merge + gather + push)  # the first merge of two
    assert result.pim_to_cpu == pytest.approx(pull + merge)
    cycles = kernel.run_cycles(MACHINE, w).total / 350e6
    assert result.kernel_cycles == pytest.approx(cycles)
    launches = 2 * transfers.launch_seconds(MACHINE, 128)
    assert result.pim_kernel == pytest.approx(cycles + launches)
    assert result.total == pytest.approx(sum(detail.values()))
    assert result.sort == 128 * 2_500 / 20e6  # in no part
    host = result.total - result.pim_kernel
    assert result.energy_joules == pytest.approx(0.15 * 128 * result.pim_kernel + 73 * host)


def test_a_plain_mean_reads_no_weights():
    weighted = workload((100,) * 100, passes=10)
    plain = dataclasses.replace(weighted, weighted_merge=False)
    w, p = (cost.modelled_seconds(MACHINE, x).detail for x in (weighted, plain))
    assert w["merge_host"] - p["merge_host"] == pytest.approx(9 * 2_000 * 4 / 15e9)
    assert w["merge_pull"] == p["merge_pull"]


def test_what_is_exchanged_does_not_grow_with_the_table():
    small, large = (
        cost.modelled_seconds(MACHINE, workload((100,) * 100, num_states=s)) for s in (16, 16_000)
    )
    for part in ("first_push", "merge_pull", "merge_push", "last_pull"):
        assert small.detail[part] == large.detail[part]


def test_scaling_needs_the_log():
    draw = np.random.default_rng(0)
    log = cost.sort_log(draw.integers(64, size=10_000), draw.integers(17, size=10_000))
    w = workload(cost.split_rows(10_000, 10), owner=log.exchange(10), passes=10)
    points = cost.strong_scaling(MACHINE, w, (10, 40), log=log)
    assert points[0].modelled == cost.modelled_seconds(MACHINE, w)
    assert [point.longest_chunk for point in points] == [1_000, 250]
    free = cost.launch_sensitivity(MACHINE, w, (0.0,), (10, 40), log=log)[0.0]
    for point, other in zip(points, free, strict=True):
        paid = 10 * transfers.launch_seconds(MACHINE, point.dpus)
        assert point.modelled.total == pytest.approx(other.modelled.total + paid)
    for bad in ({"workload": w}, {"workload": dataclasses.replace(w, owner=None), "log": log}):
        with pytest.raises(ValueError, match="log must be given if, and only if"):
            cost.strong_scaling(MACHINE, **bad)


# --- Limits and errors


def test_every_use_of_wram_is_counted():
    exchange = dataclasses.replace(EXCHANGE, needed=8_000)
    w = workload(owner=exchange, tasklets=24)
    # Buffers shrink to a record of 8 bytes for each tasklet with a lane, and not further.
    used = 80 + 32_000 + 16 * 16 + 768 * 24 + 1024 + 16 * 8
    cost.check_fits(dataclasses.replace(MACHINE, wram_bytes=used), w)
    message = r"16 lanes and 24 tasklets needs .* B of WRAM \(runs 80 \+ values 32,000"
    with pytest.raises(ValueError, match=message):
        cost.check_fits(dataclasses.replace(MACHINE, wram_bytes=used - 1), w)


def test_values_take_mram_beside_the_records():
    most = (64 * 2**20 - 65_536 - 80 - 24) // 8
    cost.check_fits(MACHINE, workload((most,)))
    with pytest.raises(ValueError, match="B of MRAM"):
        cost.check_fits(MACHINE, workload((most + 1,)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: workload(order="STR"), "order must be SEQ or RAN by owner, got STR"),
        (lambda: workload(record_bytes=16), "record_bytes must be 8 by owner, got 16"),
        (lambda: cost.OwnerExchange(0, 1, 1), "runs must be at least 1, got 0"),
        (lambda: workload(owner=None).exchange, "the workload is partitioned by time"),
        (lambda: cost.sort_log(np.zeros(3), np.zeros(3, int)), r"entries must be int \[N\]"),
        (lambda: cost.sort_log(np.zeros(3, int), np.zeros(2, int)), r"next_rows must be int \[N\]"),
        (lambda: cost.sort_log(*np.zeros((2, 3), int)).exchange(4), "dpus must be from 1 to 3"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
