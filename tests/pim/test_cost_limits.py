"""Properties of the cost model, the limits of a DPU, and the roofline."""

import dataclasses
import math

import numpy as np
import pytest
from cost_workloads import MACHINE, RULES, workload
from hypothesis import assume, given
from hypothesis import strategies as st

from accel_rl.pim import cost
from accel_rl.pim.cost import kernel
from accel_rl.pim.cost.workload import ORDERS
from pim_emu.machine import load_machine

# --- Properties

WORKLOADS = st.builds(
    workload,
    rows=st.lists(st.integers(1, 3000), min_size=1, max_size=3),
    num_states=st.integers(1, 300),
    num_actions=st.integers(1, 8),
    rule=st.sampled_from(RULES),
    numerics=st.sampled_from(cost.NUMERICS),
    order=st.sampled_from(ORDERS),
    record_bytes=st.sampled_from([8, 16]),
    target_block=st.sampled_from([1, 16, 100, 128, 256]),
    tasklets=st.integers(1, 24),
    passes=st.integers(1, 7),
    period=st.integers(1, 3),
)


@pytest.mark.long  # models many workloads twice
@given(WORKLOADS, st.integers(1, 500))
def test_more_work_never_takes_less_time(w, more):
    def seconds(**changes):
        changed = dataclasses.replace(w, **changes)
        # Lists spare transfers and take instructions: where they begin or end, more may take less.
        assume((changed.listed > 0) == (w.listed > 0))
        return cost.modelled_seconds(MACHINE, changed)

    base = seconds()
    assert base.energy_joules > 0
    assert min(base.detail.values()) >= 0
    assert base.total == pytest.approx(sum(base.detail.values()))
    tolerance = 1 - 1e-9
    rows = tuple(rows + more for rows in w.rows_per_dpu)
    assert seconds(rows_per_dpu=rows).pim_kernel >= base.pim_kernel * tolerance
    assert seconds(passes=w.passes + 1).pim_kernel > base.pim_kernel
    assert seconds(rows_per_dpu=(*w.rows_per_dpu, 1)).total >= base.total * tolerance
    assert seconds(period=w.period + 1).total <= base.total / tolerance
    assert seconds(num_states=w.num_states + 8).pim_to_cpu > base.pim_to_cpu


@given(WORKLOADS)
def test_no_kernel_beats_the_bare_instructions_or_the_memory(w):
    rows = max(w.rows_per_dpu)
    update = cost.update_instructions(w.rule, w.numerics, w.num_actions).total
    cycles = kernel.pass_cycles(MACHINE, w, rows).total
    assert cycles >= rows * update * max(1.0, 11 / w.working_tasklets)
    assert cycles >= rows * w.record_bytes * MACHINE.dma_cycles_per_byte


# --- Limits and errors


def test_taxi_fits_and_a_large_table_does_not():
    cost.check_fits(MACHINE, workload(num_states=500, num_actions=6, tasklets=24))
    cost.check_fits(MACHINE, workload(num_states=500, num_actions=6, rule="double_q_learning"))
    with pytest.raises(ValueError, match=r"2,100 states and 6 actions.*67,552 B of WRAM.*65,536 B"):
        cost.check_fits(MACHINE, workload(num_states=2100, num_actions=6))


def test_the_largest_chunk_fits_mram_and_one_row_more_does_not():
    table, reserve = 16 * 4 * (4 + 2), 65_536  # entries, and a list of them
    most = (64 * 2**20 - table - reserve) // 8
    cost.check_fits(MACHINE, workload((most,)))
    total = (most + 1) * 8 + table + reserve
    message = rf"{most + 1:,} rows needs {total:,} B of MRAM.*a DPU has 67,108,864 B"
    with pytest.raises(ValueError, match=message):
        cost.modelled_seconds(MACHINE, workload((most + 1,)))


def test_every_use_of_wram_is_counted():
    base = workload(num_states=500, num_actions=6)
    used = 12_000 + 10 * 128 + 2 * 16**2 + 1024 + 16 * 64 + 768 * 16 + 1024
    exact = dataclasses.replace(MACHINE, wram_bytes=used)
    cost.check_fits(exact, base)
    for changes in (
        {"num_states": 501},
        {"target_block": 129},
        {"tasklets": 17},
        {"order": "RAN"},
        {"order": "STR"},
        {"rule": "double_q_learning"},
    ):
        with pytest.raises(ValueError, match="B of WRAM"):
            cost.check_fits(exact, dataclasses.replace(base, **changes))
    # RAN: four blocks of 128 wide rows, orders of rows and of 128 blocks, what swaps swap with.
    random = workload((10_000,), 500, 6, order="RAN")
    used += 4 * 2048 - 16 * 64 + 2 * 128 + 2 * 128 + 2 * (127 + 128)
    cost.check_fits(dataclasses.replace(MACHINE, wram_bytes=used), random)
    with pytest.raises(ValueError, match=r"permutations 1,022\); a DPU has"):
        cost.check_fits(dataclasses.replace(MACHINE, wram_bytes=used - 1), random)


def test_more_dpus_or_tasklets_than_there_are():
    with pytest.raises(ValueError, match="2561 DPUs asked for, upmem-2560 has 2560"):
        cost.check_fits(MACHINE, workload((1,) * 2561))
    with pytest.raises(ValueError, match=r"25 tasklets asked for.* has 24"):
        cost.check_fits(MACHINE, workload(tasklets=25))
    with pytest.raises(ValueError, match=r"24 tasklets asked for.* has 16"):
        cost.check_fits(load_machine("upmem-v1b"), workload(tasklets=24))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rule": "td"}, "rule must be one of q_learning, .*, got 'td'"),
        ({"numerics": "fp64"}, "numerics must be one of fp32, .*, got 'fp64'"),
        ({"order": "seq"}, "order must be one of SEQ, .*, got 'seq'"),
        ({"rows": ()}, "sum of rows_per_dpu must be at least 1, got 0"),
        ({"rows": (0,)}, "sum of rows_per_dpu must be at least 1, got 0"),
        ({"rows": (5, -1)}, "each of rows_per_dpu must be at least 0, got -1"),
        ({"record_bytes": 12}, "record_bytes must be 8 or 16, got 12"),
        ({"imbalance": 0.9}, "imbalance must be at least 1, got 0.9"),
        ({"imbalance": math.nan}, "imbalance must be at least 1, got nan"),
        ({"target_block": 0}, "target_block must be at least 1, got 0"),
        ({"period": 0}, "period must be at least 1, got 0"),
        (
            {"independent": True, "owner": cost.OwnerExchange(1, 1, 1)},
            "independent DPUs exchange nothing, so owner must be None",
        ),
    ],
)
def test_bad_workloads_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        workload(**fields)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="num_actions must be at least 1, got 0"):
        cost.update_instructions("q_learning", "fp32", 0)
    with pytest.raises(ValueError, match="num_actions must be at least 1, got 0"):
        cost.arithmetic_operations("q_learning", 0)
    with pytest.raises(ValueError, match="instructions must be finite and above 0"):
        cost.peak_updates(MACHINE, 0.0, 11)
    with pytest.raises(ValueError, match=r"25 tasklets asked for.* has 24"):
        cost.roofline(MACHINE, "q_learning", "fp32", 4, tasklets=25)
    with pytest.raises(ValueError, match=r"pairs must be int \[n\], .* got int64 \(0,\)"):
        cost.ownership_imbalance(MACHINE, np.zeros(0, int), 16, 128)


# --- Roofline


def test_roofline_of_a_dpu():
    line = cost.roofline(MACHINE, "q_learning", "fp32", 4)
    assert line.operations_per_byte == 8 / 8
    assert line.mram_bandwidth == pytest.approx(350e6 * 2048 / (77 + 1024))
    assert line.mram_updates == pytest.approx(line.mram_bandwidth / 8)
    assert line.wram_updates == pytest.approx(2.8e9 / (8 + 4 * (4 + 2)))
    assert line.peak_updates == pytest.approx(350e6 / 543)
    block = kernel.block_cycles(MACHINE, workload(), 128).total
    assert line.attained_updates == pytest.approx(128 * 350e6 / block, rel=1e-4)
    assert line.attained_operations == pytest.approx(8 * line.attained_updates)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("numerics", cost.NUMERICS)
def test_attained_rates_stay_below_their_ceilings(rule, numerics):
    line = cost.roofline(MACHINE, rule, numerics, 6)
    assert line.attained_updates < line.peak_updates < min(line.mram_updates, line.wram_updates)
    assert line.attained_operations < line.instruction_ceiling
