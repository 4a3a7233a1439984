"""DPUs that return the entries of their rows alone: the same tables as whole ones, fewer bytes."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sdk_present import needs
from transitions import synthetic

from accel_rl import pim, tabular
from accel_rl.pim import cost, modelled, upmem
from accel_rl.pim.cost.mram import table_cycles
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.orders import NAMES as ORDERS
from accel_rl.types import TabularTransition

pytestmark = needs("gcc", "g++")
S, A, DPUS, ROWS = 41, 3, 7, 60  # 123 entries, an odd number
RATES = tabular.Hyperparameters(0.3, 0.9, 0.25)
NUMERICS = cost.NUMERICS


def every_entry(states=S):
    """Rows that visit all entries."""
    entry = jnp.arange(states * A, dtype=jnp.int32)
    state, zero = entry // A, jnp.zeros_like(entry)
    discount = jnp.ones_like(entry, jnp.float32)
    return TabularTransition(state, zero + entry % A, discount, state, discount, zero)


def words_of(program, log, dpus):
    """Rows [dpus + 1, T, 4] and lengths: a chunk of all entries comes after those of the log."""
    whole = every_entry(program.num_states)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b.astype(a.dtype)]), log, whole)
    capacity, rows = len(whole.state), len(log.state) // dpus
    columns = jax.tree.map(
        lambda x: jnp.stack(
            [jnp.resize(x[d * rows : (d + 1) * rows], capacity) for d in range(dpus)]
            + [x[-capacity:]]
        ),
        both,
    )
    lengths = jnp.asarray([rows] * (dpus - 2) + [0, 1, capacity], jnp.int32)
    chunks = pim.agent_chunks(columns, program.num_states, program.num_actions, lengths)
    return encode_chunks(program, chunks), lengths


def launch(backend, program, words, lengths, starts):
    """Tables of two passes, and what was done."""
    c = program.rule.coefficients(RATES)
    with upmem.recording() as recorded:
        memory = backend.load(program, words, lengths, c)
        tables = backend.launch(program, memory, starts, c, np.uint32(9), jnp.uint32(1), 2)
        tables = np.asarray(tables).view(np.uint32)
    return tables[: len(lengths)], recorded.report


def start_of(program, tables=1):
    scale = 1 if program.rule.numerics.dtype == np.float32 else 1_000
    starts = np.linspace(-3, 7, tables * program.entries) * scale
    starts = starts.astype(program.rule.numerics.dtype).reshape(tables, -1)
    return jnp.asarray(starts if tables > 1 else starts[0])


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        pytest.param(rule, order, marks=() if k % 4 == n else pytest.mark.slow)
        for k, rule in enumerate(tabular.RULES)
        for n, order in enumerate(ORDERS)
    ],
)
def test_listed_entries_give_the_tables_of_whole_ones(rule, order):
    """Two chunks are short, one of them without rows; numerics, tasklets and records vary."""
    turn = 4 * list(tabular.RULES).index(rule) + ORDERS.index(order)
    numerics, tasklets = NUMERICS[turn % 3], (16, 1, 24)[turn // 2 % 3]
    block, wide, own = (16, 1, 128)[turn // 3 % 3], turn % 2 == 0, turn % 4 > 1
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    program = tabular.PassProgram(made, tabular.make_order(order), S, A, block)
    log = synthetic(S, A, DPUS * ROWS)
    if wide:  # more distinct rewards than a codebook has
        log = dataclasses.replace(log, reward=jnp.arange(DPUS * ROWS, dtype=jnp.float32))
    words, lengths = words_of(program, log, DPUS)
    starts = start_of(program, DPUS + 1 if own else 1)
    backend = pim.upmem_backend(tasklets)
    few = starts[:DPUS] if own else starts
    sparse, report = launch(backend, program, words[:DPUS], lengths[:DPUS], few)
    listed = max(len(np.unique(words[d, : lengths[d], 0])) for d in range(DPUS))
    listed = -(-listed // 4) * 4
    assert report.gathered_bytes == 8 + 4 * made.tables * listed
    record = 16 if wide else 8
    assert report.scattered_bytes == 8 + 2 * listed + record * words.shape[1]
    whole, report = launch(backend, program, words, lengths, starts)
    assert report.gathered_bytes == 8 + -(-4 * program.entries // 8) * 8
    assert report.scattered_bytes == 8 + record * words.shape[1]
    np.testing.assert_array_equal(sparse, whole[:DPUS])
    assert np.any(whole[0] != np.asarray(starts).reshape(-1, program.entries)[0].view(np.uint32))
    if numerics != "fp32":
        emulated, _ = launch(pim.jax_backend(), program, words, lengths, starts)
        np.testing.assert_array_equal(whole, emulated)


def trained(dpus, **more):
    """A training on the DPUs and in JAX, each with the same settings, and what the DPUs did."""
    log = synthetic(S, A, dpus * ROWS)
    rule = tabular.make_rule(more.pop("rule", "q_learning"), tabular.int32_pow2())
    train = more.pop("train", pim.train)
    chunks = pim.partition(log, dpus, S, A) if train is pim.train else more.pop("chunks")
    upmem.release()
    with upmem.recording() as recorded:
        result = train(chunks, rule=rule, backend="upmem", **more)
    same = train(chunks, rule=rule, backend="jax", **more)
    np.testing.assert_array_equal(result.tables, same.tables)
    return recorded.report, log


def test_bytes_and_seconds_are_those_of_the_model():
    """Compare what a training with merges moved, and the parts made of it, with the model."""
    schedule = pim.MergeSchedule(passes=6, period=2)
    report, log = trained(DPUS, rule="double_q_learning", schedule=schedule)
    machine = pim.load_machine()
    columns = map(np.asarray, (log.state, log.action, log.next_state, log.discount))
    load = modelled.Load(*columns, num_states=S, num_actions=A, record_bytes=8)
    kernel = modelled.KernelSettings(
        rule="double_q_learning",
        numerics="int32_pow2",
        order=tabular.make_order("SEQ"),
        target_block=128,
        tasklets=16,
        passes=6,
        period=2,
        merge="visits",
    )
    run = modelled.workload(machine, load, kernel, DPUS)
    assert 0 < run.pulled_bytes < run.table_bytes / 2
    assert report.gathered_bytes == run.launches * (run.pulled_bytes + 8)
    assert report.scattered_bytes == run.chunk_bytes + 8 + run.list_bytes
    assert report.broadcast_bytes == run.launches * (run.table_bytes + 40)
    parts = modelled.parts_of_run(machine, report)
    model = cost.modelled_seconds(machine, run)
    # The recording has counters, too, the length of chunks and parameters with each launch.
    assert parts["pim_to_cpu"] == pytest.approx(model.pim_to_cpu, rel=0.02)
    assert parts["inter_pim"] == pytest.approx(model.inter_pim, rel=0.05)
    assert parts["cpu_to_pim"] > model.cpu_to_pim - model.detail["program"]


def test_agents_return_their_entries_alone():
    columns = [synthetic(S, A, ROWS, seed=agent) for agent in range(DPUS)]
    logs = jax.tree.map(lambda *each: jnp.stack(each), *columns)
    chunks = pim.agent_chunks(logs, S, A, [ROWS - agent for agent in range(DPUS)])
    initial = jnp.arange(DPUS * S * A, dtype=jnp.int32).reshape(DPUS, 1, S, A)
    report, _ = trained(DPUS, train=pim.train_agents, chunks=chunks, passes=3, initial=initial)
    table = 4 * (S * A + 1)
    assert report.pushed_bytes == table
    assert report.gathered_bytes < table / 2
    machine = pim.load_machine()
    parts = modelled.parts_of_agents(machine, report)
    run = cost.DpuWorkload(
        (ROWS,) * DPUS, S, A, independent=True, visited=(report.gathered_bytes - 8) // 4
    )
    expected = cost.modelled_seconds(machine, run).pim_to_cpu
    assert parts["pim_to_cpu"] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("states", "rows"), [(1, 4), (3, 1), (9, 5)])
def test_least_tables(states, rows):
    """One state: 3 entries, and a list is not shorter; 9 entries: a list of 4 is."""
    log = synthetic(states, A, DPUS * rows)
    chunks = pim.partition(log, DPUS, states, A)
    settings = {"rule": tabular.q_learning(tabular.int32_scaled()), "target_block": 16}
    settings |= {"schedule": pim.MergeSchedule(3), "order": "RAN"}
    with upmem.recording() as recorded:
        result = pim.train(chunks, backend="upmem", **settings)
    np.testing.assert_array_equal(
        result.tables, pim.train(chunks, backend="jax", **settings).tables
    )
    size = states * A
    listed = cost.DpuWorkload((rows,), states, A, visited=min(rows, size)).listed
    moved = {1: 16, 3: 16, 9: 32}[states]
    assert recorded.report.gathered_bytes == 3 * (moved + 8)
    assert (listed > 0) == (states > 1)


@functools.cache
def counted(visited, tasklets, instructions, rule="q_learning"):
    """Cycles or instructions of a launch without passes, of which all is moving tables."""
    made = tabular.make_rule(rule, tabular.int32_pow2())
    program = tabular.PassProgram(made, tabular.make_order("SEQ"), 500, 6)
    words = np.zeros((1, 3_000, 4), np.int32)
    words[0, :, 0] = np.arange(3_000) % visited * (3_000 // visited)
    words[0, :, 3] = 1 << 16 | 1 << 17  # bootstrap, valid
    backend = pim.upmem_backend(tasklets, sdk="emulator", count_instructions=instructions)
    c = made.coefficients(RATES)
    with upmem.recording() as recorded:
        memory = backend.load(program, jnp.asarray(words), jnp.asarray([3_000], jnp.int32), c)
        table = jnp.zeros(program.entries, jnp.int32)
        jax.block_until_ready(backend.launch(program, memory, table, c, 0, 0, 0))
    return recorded.report.slowest


@pytest.mark.parametrize(
    ("tasklets", "rule"),
    [
        (16, "q_learning"),
        pytest.param(1, "q_learning", marks=pytest.mark.slow),
        pytest.param(11, "q_learning", marks=pytest.mark.slow),
        pytest.param(24, "q_learning", marks=pytest.mark.slow),
        pytest.param(16, "double_q_learning", marks=pytest.mark.slow),
    ],
)
def test_constants_are_those_that_programs_count(tasklets, rule):
    k, machine = cost.load_calibration(), pim.load_machine()
    tables = 2 if rule == "double_q_learning" else 1
    least = counted(4, tasklets, True, rule)
    for visited in (100, 320, 1_000, 1_500):
        pieces = -(-visited // 32) - 1
        instructions = tables * (pieces * k["visited_read"] + (visited - 4) * k["visited_copy"])
        excess = counted(visited, tasklets, True, rule) - least
        assert instructions == pytest.approx(excess, rel=0.05), visited

    def cycles(visited):
        return table_cycles(
            machine,
            cost.DpuWorkload((3_000,), 500, 6, rule=rule, tasklets=tasklets, visited=visited),
        )

    least = counted(4, tasklets, False, rule)
    for visited in (100, 320, 1_000, 1_500):
        excess = counted(visited, tasklets, False, rule) - least
        assert cycles(visited) - cycles(4) == pytest.approx(excess, rel=0.25), visited
