"""pim.train as a function: devices, vmap, continuation, probes, bad input."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from kernels_present import needs_kernels
from transitions import synthetic

from accel_rl import pim, tabular
from pim_emu import dpu_mesh, load_machine

S, A, D = 6, 3, 13
CHUNKS = pim.partition(synthetic(S, A, 700), D, S, A)
SCHEDULE = pim.MergeSchedule(passes=5, period=2)
NUMERICS = ("fp32", "int32_scaled", "int32_pow2")


def fit(
    rates=None, *, numerics="fp32", rule="q_learning", devices=1, chunks=CHUNKS,
    make_backend=pim.jax_backend, **more,
):  # fmt: skip
    more = {"schedule": SCHEDULE, "target_block": 16, **more}
    backend = make_backend(dpu_mesh(jax.devices()[:devices]))
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    return pim.train(chunks, rates, more.pop("seed", 1), rule=made, backend=backend, **more)


both_backends = pytest.mark.parametrize(
    "make_backend",
    [pim.jax_backend, pytest.param(pim.cpu_backend, marks=needs_kernels)],
    ids=["jax", "cpu"],
)


@both_backends
@pytest.mark.parametrize("numerics", quick.only(["fp32"], NUMERICS))
@pytest.mark.parametrize("order", quick.only(["RAN"], ["STR", "RAN"]))
def test_same_bits_on_one_and_on_eight_devices(numerics, order, make_backend):
    setting = {"numerics": numerics, "order": order, "make_backend": make_backend}
    one, eight = (fit(devices=n, **setting).tables for n in (1, 8))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(eight))


@pytest.mark.parametrize("merge", quick.only(["damped"], pim.MERGES))
def test_same_bits_on_eight_devices_for_every_merge(merge):
    schedule = SCHEDULE._replace(merge=merge)
    one, eight = (fit(schedule=schedule, devices=n).tables for n in (1, 8))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(eight))


@pytest.mark.parametrize(
    ("block", "devices", "numerics"),
    [
        (1, 1, "int32_scaled"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                *((1, 1, "fp32"), (1, 1, "int32_pow2")),
                *((16, 8, numerics) for numerics in NUMERICS),
            )
        ),
    ],
)
@both_backends
def test_vmap_over_rates_equals_single_runs(numerics, block, devices, make_backend):
    rates = tabular.Hyperparameters(
        alpha=jnp.linspace(0.05, 0.5, 16), gamma=jnp.linspace(0.5, 0.9, 16), epsilon=0.1
    )
    axes = tabular.Hyperparameters(0, 0, None)
    setting = {"numerics": numerics, "target_block": block, "devices": devices}
    run = functools.partial(fit, make_backend=make_backend, **setting)
    together = np.asarray(jax.vmap(lambda r: run(r).tables, in_axes=(axes,))(rates))
    for k in range(16):
        alone = run(tabular.Hyperparameters(rates.alpha[k], rates.gamma[k], 0.1)).tables
        if numerics == "fp32":
            np.testing.assert_allclose(together[k], alone, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(together[k], np.asarray(alone))


@pytest.mark.parametrize("numerics", quick.only(["int32_scaled"], ["fp32", "int32_scaled"]))
def test_vmap_over_sixteen_seeds_equals_single_runs(numerics):
    run = functools.partial(fit, numerics=numerics, rule="sarsa_epsilon_greedy", order="RAN")
    seeds = jnp.arange(16, dtype=jnp.uint32)
    together = np.asarray(jax.vmap(lambda s: run(seed=s).tables)(seeds))
    assert len({row.tobytes() for row in together}) == 16
    for seed in range(16):
        alone = np.asarray(run(seed=seed).tables)
        if numerics == "fp32":
            np.testing.assert_allclose(together[seed], alone, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(together[seed], alone)


def test_nested_vmap_over_alpha_and_gamma():
    def run(alpha, gamma):
        return fit(tabular.Hyperparameters(alpha, gamma), numerics="int32_scaled").tables

    alphas, gammas = jnp.asarray([0.1, 0.4]), jnp.asarray([0.5, 0.7, 0.9])
    grid = jax.vmap(jax.vmap(run, in_axes=(None, 0)), in_axes=(0, None))(alphas, gammas)
    np.testing.assert_array_equal(np.asarray(grid[1, 2]), np.asarray(run(0.4, 0.9)))
    np.testing.assert_array_equal(np.asarray(grid[0, 1]), np.asarray(run(0.1, 0.7)))


@pytest.mark.long  # trains four times
def test_vmap_over_datasets_are_independent_agents():
    logs = [synthetic(S, A, 700, seed) for seed in range(3)]
    chunks = [pim.partition(log, D, S, A) for log in logs]
    stacked = jax.tree.map(lambda *xs: jnp.stack(xs), *chunks)
    agents = jax.vmap(lambda c: fit(numerics="int32_pow2", chunks=c).tables)(stacked)
    for agent, chunk in zip(agents, chunks, strict=True):
        alone = fit(numerics="int32_pow2", chunks=chunk).tables
        np.testing.assert_array_equal(np.asarray(agent), np.asarray(alone))


@pytest.mark.long  # trains two rules three times
def test_continuing_after_a_merge_gives_the_same_bits():
    for rule in ("q_learning", "double_q_learning"):
        whole = fit(rule=rule, order="RAN", schedule=pim.MergeSchedule(6, 2))
        half = fit(rule=rule, order="RAN", schedule=pim.MergeSchedule(4, 2))
        rest = fit(
            rule=rule,
            order="RAN",
            schedule=pim.MergeSchedule(2, 2),
            initial=half.tables,
            first_pass=4,
        )
        np.testing.assert_array_equal(np.asarray(whole.tables), np.asarray(rest.tables))


def test_probe_sees_every_merge_and_the_last_pass_merges():
    result = fit(schedule=pim.MergeSchedule(passes=5, period=2), probe=lambda values: values)
    assert result.history.shape == (3, S, A)
    np.testing.assert_array_equal(np.asarray(result.history[-1]), np.asarray(result.values))
    first = fit(schedule=pim.MergeSchedule(passes=2, period=2))
    np.testing.assert_array_equal(np.asarray(result.history[0]), np.asarray(first.values))
    assert fit().history is None


def test_effective_rates_are_reported():
    rates = tabular.Hyperparameters(alpha=0.1, gamma=0.95, epsilon=0.3)
    effective = fit(rates, numerics="int32_pow2").effective
    assert float(effective.alpha) == 26 / 256
    assert float(effective.gamma) == 243 / 256
    assert float(fit(rates, numerics="int32_scaled").effective.gamma) == pytest.approx(0.95)


def test_partition_gives_the_first_chunks_one_row_more():
    chunks = pim.partition(synthetic(S, A, 23), 5, S, A)
    assert chunks.lengths.tolist() == [5, 5, 5, 4, 4]
    state = np.asarray(synthetic(S, A, 23).state)
    np.testing.assert_array_equal(chunks.transitions.state[1], state[5:10])
    np.testing.assert_array_equal(chunks.transitions.state[4, :4], state[19:23])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schedule": pim.MergeSchedule(0)}, "passes must be at least 1, got 0"),
        ({"schedule": pim.MergeSchedule(5, 0)}, "period must be at least 1, got 0"),
        (
            {"schedule": pim.MergeSchedule(5, 1, "median")},
            "merge must be one of visits, .*'median'",
        ),
        ({"target_block": 0}, "target_block must be at least 1, got 0"),
        ({"order": "ZIGZAG"}, "order must be one of SEQ, .*'ZIGZAG'"),
        ({"rates": tabular.Hyperparameters(alpha=1.5)}, "alpha must be in .* got 1.5"),
        (
            {"rates": tabular.Hyperparameters(gamma=1.0), "numerics": "int32_scaled"},
            r"gamma must be in \[0, 0.99\] for int32_scaled, got 1.0",
        ),
        ({"rates": tabular.Hyperparameters(epsilon=-0.1)}, "epsilon must be in"),
        ({"initial": jnp.zeros((1, S, A + 1))}, r"initial must have shape \(1, 6, 3\)"),
        ({"initial": jnp.full((1, S, A), jnp.inf)}, "initial must be finite"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(**arguments)


def test_rewards_outside_the_numerics_range_are_refused():
    chunks = pim.partition(synthetic(S, A, 50, rewards=(-500, 500)), 2, S, A)
    with pytest.raises(ValueError, match=r"rewards must be finite and in \[-100, 100\]"):
        fit(chunks=chunks, numerics="int32_scaled")


def test_bad_partitions_are_named():
    rows = synthetic(S, A, 20)
    with pytest.raises(ValueError, match="num_dpus must be from 1 to 20, got 21"):
        pim.partition(rows, 21, S, A)
    with pytest.raises(ValueError, match=r"row \d+: action is 2, must be in \[0, 2\)"):
        pim.partition(rows, 4, S, 2)


def test_runs_that_exceed_a_dpus_memories_are_refused_with_the_numbers():
    tables = pim.partition(synthetic(5_000, 4, 50), 2, 5_000, 4)
    with pytest.raises(ValueError, match=r"needs [\d,]+ B of WRAM \(tables 80,000 .* has 65,536 B"):
        fit(chunks=tables)
    assert fit(chunks=tables, machine=None).tables.shape == (1, 5_000, 4)
    small = dataclasses.replace(load_machine(), mram_bytes=4_096)
    rows = pim.partition(synthetic(S, A, 2_000), 2, S, A)
    with pytest.raises(ValueError, match=r"chunk of 1,000 rows needs .* MRAM \(records 8,000"):
        fit(chunks=rows, machine=small)


def test_unknown_backends_are_named():
    with pytest.raises(ValueError, match="backend must be one of auto, jax, cpu, upmem, got 'tpu'"):
        pim.train(CHUNKS, rule=tabular.q_learning(), schedule=SCHEDULE, backend="tpu")
