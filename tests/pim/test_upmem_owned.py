"""DPU program by owner = NumPy, launch by launch and bit for bit; training = backend "jax"."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from rules_and_numerics import rules_and_numerics
from sdk_present import needs
from transitions import collected, synthetic
from upmem_runs import caught, check_free, run

from accel_rl import pim, tabular
from accel_rl.pim import modelled
from accel_rl.pim.cost.kernel import run_cycles
from accel_rl.pim.partition import encode_chunks

pytestmark = needs("gcc", "g++")
S, A, PASSES = 5, 3, 3
RATES = {"alpha": 0.3, "gamma": 0.9, "epsilon": 0.25}


def runs_of(chunks, lanes, actions):
    """The entry and lane of each run, for each DPU."""
    found = []
    for dpu, chunk in enumerate(chunks):
        found.append([])
        for lane, rows in enumerate(oracle.chunk_rows(chunk, lanes)):
            entries = [s * actions + a for s, a, *_ in rows]
            new = (e for k, e in enumerate(entries) if k == 0 or e != entries[k - 1])
            found[-1] += [(e, dpu * lanes + lane) for e in new]
    return found


def launch(program, words, lengths, table, seed=9, *, tasklets, special=True):
    """Values of runs after PASSES passes."""
    rates = tabular.Hyperparameters(**RATES)
    backend = pim.upmem_backend(tasklets)
    backend = backend.specialise(program, rates) if special else backend
    c = program.rule.coefficients(rates)

    @jax.jit
    def all_passes(words, lengths, table, seed):
        memory = backend.load(program, words, lengths, c)
        return backend.launch(program, memory, table, c, seed, jnp.uint32(1), PASSES)

    return np.asarray(all_passes(words, lengths, table, np.uint32(seed)))


def compare(rows, dpus, lanes, *, rule, numerics, tasklets, special=True, order="SEQ"):
    """A launch against NumPy's."""
    cut = pim.partition(rows, dpus, S, A, "owner", lanes)
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    # More runs than there are, so that some places have none.
    program = tabular.PassProgram(made, tabular.make_order(order), S, A, 1, lanes, cut.runs + 1)
    nx = oracle.NUMERICS[numerics]()
    start = oracle.zeros(rule, nx, S, A)
    scale = 1 if numerics == "fp32" else nx.scale
    start[:] = np.linspace(-3, 7, start.size).reshape(start.shape) * scale
    words = np.asarray(encode_chunks(program, cut))
    # A DPU more, without rows.
    words, lengths = np.pad(words, ((0, 1), (0, 0), (0, 0))), np.pad(cut.lengths, (0, 1))
    got = launch(program, words, lengths, start.reshape(-1), tasklets=tasklets, special=special)

    encoded = sorted(oracle.encode(rows, nx), key=lambda row: row[:2])
    chunks = [*oracle.chunk_rows(encoded, dpus), []]
    rates, passes = oracle.coefficients(nx, **RATES), range(1, 1 + PASSES)
    lane_tables, *_ = oracle.launch_by_owner(
        rule, nx, start, chunks, lanes, rates, 9, passes, order
    )
    truth = np.zeros((dpus + 1, len(start), program.runs), nx.dtype)
    for dpu, runs in enumerate(runs_of(chunks, lanes, A)):
        for slot, (entry, lane) in enumerate(runs):
            truth[dpu, :, slot] = lane_tables[lane].reshape(len(start), -1)[:, entry]
    truth = truth.reshape(got.shape)
    assert np.any(truth != 0)
    if (rule, numerics) == ("expected_sarsa", "fp32"):
        # XLA contracts a product and a sum in the value table.
        np.testing.assert_allclose(got, truth, rtol=1e-6)
    else:
        np.testing.assert_array_equal(got.view(np.uint32), truth.view(np.uint32))


orders = pytest.mark.parametrize("order", ["SEQ", "RAN"])


@orders
@rules_and_numerics
def test_rules_and_numerics(rule, numerics, order):
    # 131 rows of 4 DPUs, of 7 lanes each: nothing divides anything.
    special = list(tabular.RULES).index(rule) % 2 == 0
    setting = {"rule": rule, "numerics": numerics, "special": special}
    compare(synthetic(S, A, 131), 4, 7, **setting, tasklets=3, order=order)


@orders
@pytest.mark.parametrize(
    ("rows", "dpus", "lanes", "tasklets"),
    [
        (23, 7, 16, 24),  # empty lanes, and others of one row
        (1_100, 2, 1, 5),  # lanes that their buffers do not hold
        pytest.param(300, 1, 20, 16, marks=pytest.mark.long),
    ],
)
def test_lanes_and_tasklets(rows, dpus, lanes, tasklets, order):
    setting = {"rule": "sarsa_epsilon_greedy", "numerics": "int32_pow2", "order": order}
    compare(synthetic(S, A, rows), dpus, lanes, **setting, tasklets=tasklets)


@orders
def test_runs_that_their_buffer_does_not_hold(order):
    rows = synthetic(S, A, 700)
    one = jnp.zeros_like(rows.state)
    setting = {"rule": "sarsa_epsilon_greedy", "numerics": "int32_pow2", "order": order}
    compare(dataclasses.replace(rows, state=one, action=one), 1, 1, **setting, tasklets=5)


def fit(backend, rule="sarsa", numerics="int32_pow2", dpus=70, **more):
    chunks = pim.partition(synthetic(S, A, 700), dpus, S, A, "owner", more.pop("lanes", 4))
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    schedule = pim.MergeSchedule(5, 2)
    return pim.train(chunks, seed=3, rule=made, schedule=schedule, backend=backend, **more).tables


@pytest.mark.parametrize(
    ("rule", "numerics", "asynchronous", "order"),
    [
        ("double_q_learning", "int32_scaled", True, "RAN"),
        pytest.param("sarsa", "int32_pow2", False, "SEQ", marks=pytest.mark.long),
    ],
)
def test_training(rule, numerics, asynchronous, order):
    backend = pim.upmem_backend(11, asynchronous=asynchronous)
    tables = (fit(each, rule, numerics, order=order) for each in (backend, "jax"))
    np.testing.assert_array_equal(*map(np.asarray, tables))


def test_programs_are_shared():
    """One program of an order serves rules that do not draw, shapes of tables and logs."""
    toolkit = pim.upmem.find_toolkit("emulator")
    settings = pim.upmem.kernels.UpmemSettings(toolkit, 16, None, True, False, (26, 243, 26))

    def path(rule, states, actions, runs, rows, order="SEQ"):
        made = tabular.make_rule(rule, tabular.int32_pow2())
        program = tabular.PassProgram(
            made, tabular.make_order(order), states, actions, 128, 16, runs
        )
        return pim.upmem.kernels.build_program(settings, program, rows)

    assert path("q_learning", 16, 4, 20, 500) == path("expected_sarsa", 500, 6, 90, 2_500)
    assert path("q_learning", 16, 4, 20, 500) != path("double_q_learning", 16, 4, 20, 500)
    assert path("q_learning", 16, 4, 20, 500) != path("q_learning", 16, 4, 20, 500, "RAN")


def test_what_is_recorded():
    pim.upmem.release()
    with pim.upmem.recording() as recorded:
        fit("upmem", dpus=1, lanes=2)
    report = recorded.report
    assert (report.dpus, report.loads, report.launches, report.program_loads) == (1, 1, 3, 1)
    assert report.scattered_bytes == 700 * 8 + 2 * 16  # rows and lanes
    assert (report.load_broadcast_bytes, report.broadcast_bytes) == (0, 3 * 40)
    # Every entry has a run in one of the lanes, the middle one in both; every value is needed.
    assert report.pushed_bytes == 3 * (16 + 16) * 4
    assert report.gathered_bytes == 3 * (16 * 4 + 8)
    seconds = modelled.parts_of_run(pim.load_machine(), report)
    assert all(value > 0 for value in seconds.values())
    with pim.upmem.recording() as recorded:
        fit("upmem", dpus=1, lanes=2, order="RAN")
    assert recorded.report.scattered_bytes == (700 + 16) * 8 + 2 * 16  # runs have heads


@pytest.mark.long  # trains five passes first
@pytest.mark.parametrize(("numerics", "most"), [("int32_scaled", 55), ("int32_pow2", 30)])
def test_instructions_of_an_update(numerics, most):
    log = collected("FrozenLake-v1", 4_000)
    shape = log.info.num_states, log.info.num_actions
    chunks = pim.partition(log.transitions, 8, *shape, "owner")
    train = functools.partial(
        pim.train, chunks, rule=tabular.q_learning(tabular.make_numerics(numerics)),
        backend=pim.upmem_backend(sdk="emulator", count_instructions=True),
    )  # fmt: skip
    before = train(schedule=pim.MergeSchedule(5))
    with pim.upmem.recording() as recorded:
        train(schedule=pim.MergeSchedule(1), initial=before.tables)
    assert most / 2 < recorded.report.counted / 4_000 <= most


@pytest.mark.long  # trains five passes first
@pytest.mark.parametrize("order", ["SEQ", "RAN"])
# Lanes that their buffers hold, and longer ones.
@pytest.mark.parametrize(("rows", "dpus"), [(4_000, 8), (6_000, 1)])
def test_modelled_cycles_are_near_the_counted_ones(order, rows, dpus):
    log = collected("FrozenLake-v1", rows)
    shape = log.info.num_states, log.info.num_actions
    train = functools.partial(
        pim.train, pim.partition(log.transitions, dpus, *shape, "owner"), order=order,
        rule=tabular.q_learning(tabular.int32_pow2()), backend=pim.upmem_backend(sdk="emulator"),
    )  # fmt: skip
    before = train(schedule=pim.MergeSchedule(5))
    with pim.upmem.recording() as recorded:
        train(schedule=pim.MergeSchedule(2, 2), initial=before.tables)
    kernel = modelled.KernelSettings(
        rule="q_learning", numerics="int32_pow2", order=tabular.make_order(order), target_block=128,
        tasklets=16, passes=2, period=2, merge="visits", lanes=16,
    )  # fmt: skip
    machine = pim.load_machine()
    run = modelled.workload(machine, modelled.load_of(log), kernel, dpus)
    assert run_cycles(machine, run).total == pytest.approx(recorded.report.slowest, rel=0.2)


def test_more_runs_than_the_program_has():
    cut = pim.partition(synthetic(S, A, 50), 2, S, A, "owner", 3)
    rule = tabular.q_learning(tabular.int32_scaled())
    program = tabular.PassProgram(rule, tabular.make_order("SEQ"), S, A, 1, 3, cut.runs - 1)
    words, table = encode_chunks(program, cut), jnp.zeros(S * A, jnp.int32)

    def work():
        with pim.upmem.typed_errors():
            launch(program, words, cut.lengths, table, tasklets=2)

    error = caught(pim.upmem.InvalidRows, work)
    assert f"has {cut.runs} runs, more than {cut.runs - 1}" in str(error)
    check_free()


def test_values_that_exceed_the_wram():
    rows, actions = synthetic(300, 50, 600), 50
    rule = tabular.sarsa(tabular.int32_scaled(), next_action="epsilon_greedy")
    work = functools.partial(
        pim.train, pim.partition(rows, 1, 300, actions, "owner"), rule=rule,
        schedule=pim.MergeSchedule(1), backend="upmem", machine=None,
    )  # fmt: skip
    error = caught(pim.upmem.TooLarge, work)
    assert "runs and values of a DPU need" in str(error)
    check_free()


def traced():
    for order in ("SEQ", "RAN"):
        setting = {"rule": "double_q_learning", "dpus": 3, "order": order}
        tables = (fit(x, **setting) for x in (pim.upmem_backend(3), "jax"))
        np.testing.assert_array_equal(*map(np.asarray, tables))


def test_no_race_under_a_random_schedule():
    run(traced, PIM_EMU_TRACE=1, PIM_EMU_SCHEDULE="random", PIM_EMU_SEED=1)
