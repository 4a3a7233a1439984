"""Independent agents on every backend: bit for bit NumPy's, agent by agent, and `update`'s own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import quick
from kernels_present import needs_kernels
from rules_and_numerics import rules_and_numerics
from sdk_present import needs
from transitions import synthetic

import pim_emu
from accel_rl import pim, tabular
from accel_rl.tabular.orders import NAMES as ORDERS

S, A, ROWS = 5, 3, 150  # a table of 60 bytes, no multiple of the 8 that DPUs move
RATES = {"alpha": 0.3, "gamma": 0.9, "epsilon": 0.25}
SEED, FIRST, PASSES = 9, 2, 2
BACKENDS = [
    "jax",
    pytest.param("cpu", marks=needs_kernels),
    pytest.param("upmem", marks=needs("gcc", "g++")),
]
on_every_backend = pytest.mark.parametrize("backend", BACKENDS)


@functools.cache
def logs(agents, rows=ROWS):
    """Columns [agents, rows], and how many rows of each agent are real."""
    own = [synthetic(S, A, rows, seed=agent) for agent in range(agents)]
    lengths = np.asarray([rows - (agent * 37) % rows for agent in range(agents)])
    lengths[1] = 0 if agents > 2 else 1
    return jax.tree.map(lambda *columns: np.stack(columns), *own), lengths


def starts(rule, numerics, agents):
    """Tables [agents, K, S, A], different for each agent."""
    nx = oracle.NUMERICS[numerics]()
    one = oracle.zeros(rule, nx, S, A)
    scale = 1 if numerics == "fp32" else nx.scale
    return (np.linspace(-3, 7, agents * one.size) * scale).astype(nx.dtype).reshape(-1, *one.shape)


def truth(rule, numerics, order, block, agents, passes=range(FIRST, FIRST + PASSES)):
    nx, (columns, lengths) = oracle.NUMERICS[numerics](), logs(agents)
    tables = starts(rule, numerics, agents)
    for agent, table in enumerate(tables):
        own = jax.tree.map(lambda column: column[agent, : lengths[agent]], columns)  # noqa: B023
        rows = oracle.encode(own, nx)
        for index in passes:
            visited = oracle.order_of(order, 4, len(rows), oracle.stream(SEED, index, agent, 1))
            draws = oracle.stream(SEED, index, agent, 2)
            rates = oracle.coefficients(nx, **RATES)
            oracle.run_pass(rule, nx, table, rows, visited, block, rates, draws)
    return tables


def train(agents=5, rule="q_learning", numerics="int32_scaled", rates=RATES, **more):
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    columns, lengths = logs(agents)
    settings = {"rule": made, "passes": PASSES, "first_pass": FIRST, "seed": SEED} | more
    settings.setdefault("initial", jnp.asarray(starts(rule, numerics, agents)))
    chunks = pim.agent_chunks(columns, S, A, lengths)
    return pim.train_agents(chunks, tabular.Hyperparameters(**rates), **settings)


def compare(rule, numerics, order, block, backend, agents=5, **more):
    tables = train(
        agents, rule, numerics, order=order, target_block=block, backend=backend, **more
    ).tables
    expected = truth(rule, numerics, order, block, agents)
    if numerics == "fp32" and backend == "jax":  # which contracts products and sums
        np.testing.assert_allclose(tables, expected, rtol=2e-5, atol=2e-5)
    else:
        same = np.asarray(tables).view(np.uint32) == expected.view(np.uint32)
        assert same.all(), f"{rule} {numerics} {order} block {block}: {np.argwhere(~same)}"


@on_every_backend
@rules_and_numerics
def test_agents_equal_numpy(rule, numerics, backend):
    index = list(tabular.RULES).index(rule)
    order, block = ORDERS[index % len(ORDERS)], (1, 16, 128)[index % 3]
    compare(rule, numerics, order, block, backend)


@pytest.mark.long
@on_every_backend
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("agents", [2, 1000])
def test_numbers_of_agents_and_orders(agents, order, backend):
    compare("double_q_learning", "int32_pow2", order, 16, backend, agents)


@on_every_backend
@pytest.mark.parametrize(
    "rule", quick.only(["q_learning"], ["q_learning", "sarsa", "expected_sarsa"])
)
def test_agents_equal_their_own_updates(rule, backend):
    """`independent_learners` scanned over transitions, which two equally long logs allow."""
    made = tabular.independent_learners(
        tabular.make_rule(rule, tabular.make_numerics("int32_scaled")), 2
    )
    columns, rates = logs(2)[0], tabular.Hyperparameters(**RATES)
    by_row = jax.tree.map(lambda column: jnp.asarray(column.T), columns)
    expected, _ = jax.lax.scan(
        lambda tables, row: (made.update(tables, row, rates), None), made.init(S, A), by_row
    )
    result = pim.train_agents(
        pim.agent_chunks(columns, S, A), rates, rule=made, passes=1, target_block=1, backend=backend
    )
    np.testing.assert_array_equal(result.tables, expected)
    np.testing.assert_array_equal(result.values, made.values(expected))
    assert result.effective.alpha == pytest.approx(0.3)


@on_every_backend
def test_passes_in_several_calls(backend):
    settings = {"rule": "double_q_learning", "order": "RAN", "backend": backend}
    whole = train(**settings).tables
    first = train(passes=1, **settings).tables
    np.testing.assert_array_equal(
        train(passes=1, first_pass=FIRST + 1, initial=first, **settings).tables, whole
    )


@on_every_backend
def test_rates_under_vmap_and_jit(backend):
    def run(alpha):
        return train(rates=RATES | {"alpha": alpha}, backend=backend).tables

    alphas = jnp.asarray([0.3, 0.5], jnp.float32)
    each = [run(alpha) for alpha in alphas]
    np.testing.assert_array_equal(jax.vmap(run)(alphas), np.stack(each))
    np.testing.assert_array_equal(jax.jit(run)(alphas[1]), each[1])


def test_padding_is_not_read():
    columns, lengths = logs(5)
    beyond = np.arange(ROWS) >= lengths[:, None]
    wrong = jax.tree.map(lambda column: np.where(beyond, -7, column).astype(column.dtype), columns)
    chunks = pim.agent_chunks(wrong, S, A, list(lengths))
    rule = tabular.q_learning(tabular.int32_scaled())
    settings = {"rule": rule, "passes": PASSES, "order": "RAN", "target_block": 16}
    settings |= {"seed": SEED, "first_pass": FIRST, "backend": "jax"}
    initial = jnp.asarray(starts("q_learning", "int32_scaled", 5))
    result = pim.train_agents(chunks, tabular.Hyperparameters(**RATES), initial=initial, **settings)
    expected = truth("q_learning", "int32_scaled", "RAN", 16, 5)
    np.testing.assert_array_equal(result.tables, expected)


@needs("gcc", "g++")
def test_one_launch_moves_tables_once():
    with pim.upmem.recording() as recorded:
        train(backend="upmem", passes=7)
    report, table = recorded.report, 64
    assert (report.dpus, report.launches, report.loads) == (5, 1, 1)
    assert report.scattered_bytes == 8 + 8 * ROWS  # chunk, records
    assert report.pushed_bytes == table
    assert report.gathered_bytes == table + 8
    assert report.broadcast_bytes < table  # parameters alone
    parts = pim.modelled.parts_of_agents(pim.load_machine(), report)
    assert parts["inter_pim"] == 0
    assert all(parts[name] > 0 for name in ("cpu_to_pim", "pim_kernel", "pim_to_cpu"))


@pytest.fixture
def released():
    """No DPU is held, before and after."""
    pim_emu.configure(quiet=True)
    pim.upmem.release()
    yield
    pim.upmem.release()
    pim_emu.configure(quiet=False)


@needs("gcc", "g++")
@pytest.mark.usefixtures("released")
@pytest.mark.parametrize("agents", quick.only([100], [65, 100, 200]))
def test_rounds_where_fewer_dpus_are_free(agents):
    rounds = -(-agents // 64)  # one rank is left
    settings = ("double_q_learning", "int32_scaled", "RAN", 16, "upmem", agents)
    with pim_emu.DpuSet(pim_emu.load_machine().total_dpus - 64):
        for _ in range(2):  # the second time the DPUs are held already
            with pim.upmem.recording() as recorded:
                compare(*settings)
            assert recorded.report.launches == rounds
            assert recorded.report.dpus == -(-agents // rounds)
        columns, lengths = logs(agents)
        chunks = pim.agent_chunks(columns, S, A, lengths)
        rule, schedule = tabular.double_q_learning(tabular.int32_scaled()), pim.MergeSchedule(1)
        same = {"order": "RAN", "target_block": 16, "backend": "upmem"}
        with pytest.raises(pim.upmem.TooFewDpus):  # merges want all tables together
            pim.train(chunks, rule=rule, schedule=schedule, **same)
    pim.upmem.release()
    with pim.upmem.recording() as recorded:
        compare(*settings)
    assert recorded.report.launches == 1


@needs("gcc", "g++")
@pytest.mark.usefixtures("released")
def test_no_dpu_is_free():
    with pim_emu.DpuSet(pim_emu.load_machine().total_dpus), pytest.raises(pim.upmem.TooFewDpus):
        train(backend="upmem")
