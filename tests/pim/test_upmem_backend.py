"""Backend "upmem" as part of pim.train: contract, transformations, what it reports, learning."""

import dataclasses
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from backend_conformance import check_backend
from sdk_present import needs
from transitions import synthetic

from accel_rl import datasets, envs, pim, tabular
from accel_rl.pim import modelled, upmem
from pim_emu.cost import launch_seconds

pytestmark = needs("gcc", "g++")
S, A, D = 6, 3, 70  # of two ranks, one of them in part
LOG = synthetic(S, A, 700)
CHUNKS = pim.partition(LOG, D, S, A)
SCHEDULE = pim.MergeSchedule(passes=5, period=2)


def fit(rates=None, seed=0, *, backend="upmem", numerics="int32_scaled", chunks=CHUNKS, **more):
    rule = tabular.make_rule(more.pop("rule", "q_learning"), tabular.make_numerics(numerics))
    setting = {"schedule": SCHEDULE, "target_block": 16, **more}
    return pim.train(chunks, rates, seed, rule=rule, backend=backend, **setting)


@pytest.mark.parametrize(
    ("numerics", "rule", "order", "options"),
    [
        ("int32_scaled", "double_q_learning", "RAN", {}),
        ("fp32", "q_learning", "SEQ", {"tasklets": 11}),
        ("int32_pow2", "expected_sarsa", "STR", {"specialise": False, "tasklets": 24}),
        pytest.param(
            *("int32_pow2", "sarsa", "RAN_REPLACEMENT", {"asynchronous": False}),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("int32_scaled", "sarsa_epsilon_greedy", "RAN", {"machine": "upmem-v1b"}),
            marks=pytest.mark.long,
        ),
    ],
)
def test_contract(numerics, rule, order, options):
    check_backend(pim.upmem_backend(**options), numerics, rule, order)


def test_tables_of_an_odd_number_of_entries():
    chunks = pim.partition(synthetic(5, 3, 200), 9, 5, 3)
    np.testing.assert_array_equal(
        fit(chunks=chunks).tables, fit(chunks=chunks, backend="jax").tables
    )


def test_chunks_of_different_and_no_length():
    few = pim.partition(synthetic(S, A, 75), D, S, A)  # one row or two
    np.testing.assert_array_equal(fit(chunks=few).tables, fit(chunks=few, backend="jax").tables)


@pytest.mark.parametrize(
    "options",
    [{"asynchronous": False}, pytest.param({"specialise": False}, marks=pytest.mark.slow)],
)
def test_options_change_no_bit(options):
    np.testing.assert_array_equal(
        fit(backend=pim.upmem_backend(**options)).tables, fit(backend=pim.upmem_backend()).tables
    )


@pytest.mark.long  # builds a program for each rate
def test_rates_under_vmap():
    alphas = jnp.asarray([0.1, 0.3, 0.9])
    mapped = jax.vmap(lambda alpha: fit(tabular.Hyperparameters(alpha, 0.9)).tables)(alphas)
    assert len(np.unique(mapped, axis=0)) == 3
    for alpha, tables in zip(alphas, mapped, strict=True):
        alone = fit(tabular.Hyperparameters(float(alpha), 0.9))
        np.testing.assert_array_equal(tables, alone.tables)


def test_seeds_that_nothing_goes_by_share_launches():
    seeds = jnp.arange(4, dtype=jnp.uint32)
    with upmem.recording() as recorded:
        tables = jax.block_until_ready(jax.vmap(lambda seed: fit(seed=seed).tables)(seeds))
    assert recorded.report.launches == 3
    np.testing.assert_array_equal(tables[3], fit().tables)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_forked_process_leaves_its_parents_dpus_alone():
    fit()
    child = os.fork()
    if child == 0:
        held = upmem.held()
        upmem.release()
        os._exit(held)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(fit().tables, fit(backend="jax").tables)


@pytest.mark.long  # trains three times
def test_datasets_under_vmap_each_have_their_rows():
    # The launches of the two alternate on one set of DPUs.
    logs = [synthetic(S, A, 700, seed) for seed in range(2)]
    chunks = [pim.partition(log, D, S, A) for log in logs]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *chunks)
    together = jax.vmap(lambda c: fit(chunks=c).tables)(stacked)
    for tables, one in zip(together, chunks, strict=True):
        np.testing.assert_array_equal(tables, fit(chunks=one, backend="jax").tables)


@pytest.mark.long  # trains four times
def test_two_trainings_in_one_computation():
    other = pim.partition(synthetic(S, A, 350, 3), 5, S, A)

    @jax.jit
    def both(chunks, other):
        return fit(chunks=chunks).tables, fit(chunks=other, rule="sarsa").tables

    first, second = both(CHUNKS, other)
    np.testing.assert_array_equal(first, fit(backend="jax").tables)
    np.testing.assert_array_equal(second, fit(chunks=other, rule="sarsa", backend="jax").tables)


def test_rows_that_only_jit_knows_are_checked():
    bad = LOG.next_action.at[311].set(A)

    @jax.jit
    def run(column):
        log = dataclasses.replace(LOG, next_action=column)
        return fit(chunks=pim.partition(log, D, S, A)).tables

    with (
        pytest.raises(upmem.InvalidRows, match=r"row 1 of chunk 31: next_action must be in \[0, 3"),
        upmem.typed_errors(),
    ):
        run(bad).block_until_ready()
    np.testing.assert_array_equal(run(LOG.next_action), fit(backend="jax").tables)


def test_what_is_recorded():
    upmem.release()
    with upmem.recording() as recorded:
        fit()
    report = recorded.report
    assert (report.dpus, report.loads, report.launches, report.program_loads) == (D, 1, 3, 1)
    assert report.scattered_bytes == 10 * 8 + 8  # the longest chunk; its length and index
    assert report.load_broadcast_bytes == 256 * 4  # the codebook
    assert report.broadcast_bytes == 3 * (S * A * 4 + 40)
    assert report.gathered_bytes == 3 * (S * A * 4 + 8)
    assert 0 < report.slowest < report.counted < D * report.slowest
    assert report.load_seconds > 0 < report.launch_seconds

    machine = pim.load_machine()
    seconds = modelled.parts_of_run(machine, report)
    assert list(seconds) == ["cpu_to_pim", "pim_kernel", "inter_pim", "pim_to_cpu"]
    assert seconds["pim_kernel"] == report.slowest / 350e6 + 3 * launch_seconds(machine, D)
    assert all(value > 0 for value in seconds.values())
    with upmem.recording() as nothing:
        pass
    with upmem.recording() as outer:
        fit()
        with upmem.recording() as inner:
            fit()
    assert (outer.report.launches, inner.report.launches) == (6, 3)
    with pytest.raises(ValueError, match="launches of the report must be at least 1, got 0"):
        modelled.parts_of_run(pim.load_machine(), nothing.report)


def test_instructions_or_cycles():
    counts = {}
    for counted in (False, True):
        with upmem.recording() as recorded:
            fit(backend=pim.upmem_backend(1, count_instructions=counted))
        counts[counted] = recorded.report.counted
    # One tasklet issues an instruction in eleven cycles, and waits for transfers.
    assert 10.9 < counts[False] / counts[True] < 13
    with pytest.raises(ValueError, match="the DPUs counted instructions"):
        modelled.parts_of_run(pim.load_machine(), recorded.report)


def test_a_machine_of_the_users_own_is_not_emulated():
    mine = dataclasses.replace(pim.load_machine(), name="mine")
    with pytest.raises(ValueError, match=r"machine must be one of .*, got 'mine'"):
        fit(machine=mine)


def test_dpus_are_held_until_they_are_released():
    fit()
    assert upmem.held() == D
    upmem.release()
    assert upmem.held() == 0
    np.testing.assert_array_equal(fit().tables, fit(backend="jax").tables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasklets": 0}, "tasklets must be from 1 to 24, got 0"),
        ({"tasklets": 17, "machine": "upmem-v1b"}, "tasklets must be from 1 to 16, got 17"),
        ({"machine": "pdp-11"}, "machine must be one of upmem-2560, upmem-v1b, got 'pdp-11'"),
        ({"sdk": "none"}, "sdk must be one of auto, vendor, emulator, got 'none'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        pim.upmem_backend(**options)


def test_numerics_without_a_kernel_are_refused():
    rule = tabular.q_learning(tabular.int32_scaled(scale=1_000))
    with pytest.raises(ValueError, match=r"backend 'upmem': numerics .* no native kernel"):
        pim.train(CHUNKS, rule=rule, schedule=SCHEDULE, backend="upmem")


@pytest.mark.parametrize(
    ("name", "least", "numerics"),
    [
        pytest.param("FrozenLake-v1", 0.72, "int32_pow2", marks=pytest.mark.slow),
        *(
            pytest.param("FrozenLake-v1", 0.72, numerics, marks=pytest.mark.slow)
            for numerics in ("fp32", "int32_scaled")
        ),
        *(
            pytest.param("Taxi-v3", 7.9, numerics, marks=pytest.mark.slow)
            for numerics in ("int32_pow2", "fp32", "int32_scaled")
        ),
    ],
)
def test_q_learning_on_two_thousand_dpus(name, least, numerics):
    mdp = envs.make_mdp(name)
    log = datasets.collect(mdp, "random", 1_000_000, seed=0, environment=name)
    chunks = pim.partition(log.transitions, 2_000, mdp.num_states, mdp.num_actions)
    with upmem.recording() as recorded:
        result = pim.train(
            chunks,
            tabular.Hyperparameters(alpha=0.1, gamma=0.95),
            rule=tabular.q_learning(tabular.make_numerics(numerics)),
            schedule=pim.MergeSchedule(passes=100),
            backend="upmem",
        )
    policy = tabular.greedy_policy(result.values)
    assert float(tabular.episode_return(mdp, policy)) >= least
    seconds = modelled.parts_of_run(pim.load_machine(), recorded.report)
    # The cost model, which does not run anything, is near in all four parts.
    load = modelled.load_of(log)
    kernel = modelled.KernelSettings(
        rule="q_learning", numerics=numerics, order=tabular.make_order("SEQ"), target_block=128,
        tasklets=16, passes=100, period=1, merge="visits",
    )  # fmt: skip
    machine = pim.load_machine()
    expected = modelled.parts(machine, modelled.workload(machine, load, kernel, 2_000))
    assert seconds == pytest.approx(expected, rel=0.3)
