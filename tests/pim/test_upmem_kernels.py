"""DPU programs: no race under any schedule, room in both cores, instructions of an update."""

import functools
import itertools
import shutil

import jax
import numpy as np
import pytest
import quick
from dpu_programs import KERNELS, SOURCE, build, launch
from sdk_present import needs
from transitions import collected, synthetic

import pim_emu
from accel_rl import pim, tabular
from accel_rl.tabular.orders import NAMES as ORDERS
from pim_emu.toolchain.elf import ElfFile

pytestmark = needs("gcc", "g++")
ROWS = synthetic(6, 3, 300)
SHAPE = {"states": 6, "actions": 3}


@pytest.fixture
def schedules():
    """Tasklets in the order of their clocks, then in three random orders."""

    def each():
        for seed, random in ((0, False), (1, True), (2, True), (3, True)):
            pim_emu.configure(seed=seed, random=random, quiet=True)
            yield
        pim_emu.configure(seed=0, random=False)

    yield each
    pim_emu.configure(seed=0, random=False, quiet=False)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("rule", "numerics", "block", "tasklets"),
    [
        ("double_q_learning", "int32_pow2", 16, 11),
        pytest.param("sarsa_epsilon_greedy", "int32_scaled", 1, 3, marks=pytest.mark.slow),
        ("expected_sarsa", "fp32", 100, 24),
    ],
)
def test_no_race_under_any_schedule(rule, numerics, order, block, tasklets, schedules):
    setting = {"rule": rule, "numerics": numerics, "order": order, "block": block, **SHAPE}
    program = build(tasklets, **setting, rows=150, traced=True)
    for _ in schedules():
        tables, truth = launch(program, ROWS, 2, **setting)
        np.testing.assert_array_equal(tables, truth)


@pytest.mark.parametrize("block", quick.only([65], [65, 96, 128]))
def test_blocks_of_ran_stay_while_they_are_wanted(block, schedules):
    # More of them than WRAM holds at a time, a short one among them.
    rows, setting = synthetic(6, 3, 900), {"numerics": "int32_pow2", "order": "RAN"}
    setting |= {"rule": "q_learning", "block": block, **SHAPE}
    program = build(11, **setting, rows=900, traced=True)
    for _ in schedules():
        tables, truth = launch(program, rows, 1, **setting)
        np.testing.assert_array_equal(tables, truth)


@pytest.mark.parametrize("tasklets", [1, 5])
def test_listed_entries_are_stored_without_a_race(tasklets, schedules):
    # Two tables, and more pieces of a list than tasklets.
    setting = {"rule": "double_q_learning", "numerics": "int32_pow2", "order": "SEQ", "block": 16}
    setting |= {"states": 101, "actions": 5}
    program = build(tasklets, **setting, rows=200, traced=True)
    for _ in schedules():
        tables, truth = launch(program, synthetic(101, 5, 400), 2, lists=True, **setting)
        np.testing.assert_array_equal(tables, truth)


APPLY = "arl_apply_owned(program, updates, lists, q, &shared, me(), NR_TASKLETS);"
BARRIER = "barrier_wait(&everybody);"


@pytest.mark.parametrize("order", ["SEQ", "RAN"])
@pytest.mark.parametrize("pair", [(BARRIER, APPLY), (APPLY, BARRIER)], ids=["before", "after"])
def test_a_missing_barrier_is_a_race(order, pair, tmp_path):
    # So that the test above can fail: without the barrier before or after the updates.
    shutil.copytree(KERNELS / "upmem", tmp_path / "upmem")
    source = tmp_path / "upmem" / "dpu" / "tabular.c"
    both = "\n    ".join(pair)
    assert SOURCE.read_text().count(both) == 1
    source.write_text(SOURCE.read_text().replace(both, APPLY))
    setting = {"rule": "q_learning", "numerics": "fp32", "order": order, "block": 16, **SHAPE}
    program = build(4, source, **setting, rows=150, traced=True)
    with pytest.raises(pim_emu.EmulatorFault, match="race"):
        launch(program, ROWS, 2, **setting)


LARGEST = [("double_q_learning", 500, 6), ("expected_sarsa", 48, 4), ("q_learning", 16, 4)]


def program_of(rule, states, actions, numerics, order, machine, tasklets):
    """A program as the backend builds it, for chunks of 2,500 rows: 5 M on 2,000 DPUs."""
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    program = tabular.PassProgram(made, tabular.make_order(order), states, actions)
    toolkit = pim.upmem.find_toolkit("emulator")
    settings = pim.upmem.kernels.UpmemSettings(toolkit, tasklets, machine, True, False, None)
    return pim.upmem.kernels.build_program(settings, program, 2_500)


CASES = itertools.product(
    ("STR", "RAN"),
    ("fp32", "int32_scaled", "int32_pow2"),
    (("upmem-2560", 24), ("upmem-v1b", 16)),
)


def mark_of(order, numerics, machine):
    if (order, numerics, machine) == ("RAN", "int32_scaled", "upmem-2560"):
        return ()
    return pytest.mark.long if order == "RAN" and numerics != "fp32" else pytest.mark.slow


@pytest.mark.parametrize(
    ("order", "numerics", "machine", "tasklets"),
    [
        pytest.param(order, numerics, machine, tasklets, marks=mark_of(order, numerics, machine))
        for order, numerics, (machine, tasklets) in CASES
    ],
)
def test_programs_fit_both_cores(machine, tasklets, numerics, order):
    limits = pim.load_machine(machine)
    for rule, states, actions in LARGEST:
        # That WRAM suffices, stacks included, the linker has checked.
        elf = ElfFile(program_of(rule, states, actions, numerics, order, machine, tasklets))
        assert sum(elf.words(".emu.iram")) < 0.5 * limits.iram_instructions


# Instructions of an update, counted in code of the vendor's compiler: FrozenLake and Taxi.
GOLDEN = {
    "fp32": (543, 619),
    "int32_scaled": (92, 105),
    "int32_pow2": (44, 54),
}


@functools.cache
def instructions(name, numerics, block=1, tasklets=1):
    """Of an update of Q-learning in the 20th pass over 4,096 rows."""
    dataset = collected(name, 4_096)
    states, actions = dataset.info.num_states, dataset.info.num_actions
    chunks = pim.partition(dataset.transitions, 1, states, actions)
    run = functools.partial(
        pim.train, chunks, tabular.Hyperparameters(0.1, 0.95),
        rule=tabular.q_learning(tabular.make_numerics(numerics)), target_block=block,
        backend=pim.upmem_backend(tasklets, sdk="emulator", count_instructions=True),
    )  # fmt: skip
    before = run(schedule=pim.MergeSchedule(19, 19))
    with pim.upmem.recording() as recorded:
        jax.block_until_ready(run(schedule=pim.MergeSchedule(1), initial=before.tables))
    return recorded.report.counted / 4_096


@pytest.mark.parametrize(
    ("name", "column"),
    [
        pytest.param("FrozenLake-v1", 0, marks=pytest.mark.long),
        pytest.param("Taxi-v3", 1, marks=pytest.mark.slow),
    ],
)
def test_instructions_of_an_update_are_near_the_golden_counts(name, column):
    counts = {numerics: instructions(name, numerics) for numerics in GOLDEN}
    for numerics, golden in GOLDEN.items():
        assert counts[numerics] == pytest.approx(golden[column], rel=0.25), numerics
    assert counts["int32_pow2"] <= 0.55 * counts["int32_scaled"]
    assert counts["fp32"] >= 5 * counts["int32_scaled"]


@pytest.mark.long  # trains 19 passes first
def test_sharing_a_target_block_costs_less_than_an_update_of_int32():
    alone, shared = (
        instructions("Taxi-v3", "int32_pow2", block, tasklets)
        for block, tasklets in ((1, 1), (128, 16))
    )
    assert alone < shared < 2.2 * alone
