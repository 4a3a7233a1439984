"""Training by owner against the truth of tests/oracle.py, and as a function."""

import dataclasses
import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import quick
from rules_and_numerics import rules_and_numerics
from transitions import synthetic

from accel_rl import pim, tabular
from accel_rl.types import TabularTransition
from pim_emu import dpu_mesh

S, A = 5, 3
ROWS = synthetic(S, A, 130)


def fit(
    rows=ROWS, *, dpus=3, lanes=4, rule="q_learning", numerics="int32_scaled", devices=1, **more
):
    chunks = pim.partition(rows, dpus, S, A, "owner", lanes)
    rates = {k: more.pop(k) for k in ("alpha", "gamma", "epsilon") if k in more}
    names = ("passes", "period", "merge")
    schedule = {"passes": 3, "period": 2} | {k: more.pop(k) for k in names if k in more}
    return pim.train(
        chunks,
        tabular.Hyperparameters(**rates),
        more.pop("seed", 5),
        rule=tabular.make_rule(rule, tabular.make_numerics(numerics)),
        schedule=pim.MergeSchedule(**schedule),
        backend=more.pop("backend", pim.jax_backend(dpu_mesh(jax.devices()[:devices]))),
        **more,
    )


def compare(rows=ROWS, *, dpus=3, lanes=4, rule="q_learning", numerics="int32_scaled", **more):
    result = fit(rows, dpus=dpus, lanes=lanes, rule=rule, numerics=numerics, **more)
    setting = {"passes": 3, "period": 2, "seed": 5} | more
    setting["merging"] = setting.pop("merge", "visits")
    truth = oracle.train(rows, S, A, dpus, rule=rule, numerics=numerics, lanes=lanes, **setting)
    if numerics == "fp32":
        np.testing.assert_allclose(result.tables, truth, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(np.asarray(result.tables), truth)
    return truth


orders = pytest.mark.parametrize("order", ["SEQ", "RAN"])


@orders
@rules_and_numerics
def test_rules_and_numerics(rule, numerics, order):
    assert np.any(compare(rule=rule, numerics=numerics, order=order) != 0)


@pytest.mark.parametrize("numerics", quick.only(["fp32"], ["fp32", "int32_scaled"]))
@pytest.mark.parametrize("merge", pim.MERGES)
def test_merges(merge, numerics):
    compare(merge=merge, numerics=numerics, rule="double_q_learning")


@orders
@pytest.mark.parametrize(("dpus", "lanes"), [(1, 1), (13, 16), (130, 2)])
def test_dpus_and_lanes(dpus, lanes, order):
    # 130 rows of 13 DPUs: lanes of one row, and empty ones.
    compare(dpus=dpus, lanes=lanes, rule="sarsa_epsilon_greedy", order=order)


def test_periods_of_one_pass():
    compare(rule="q_learning", numerics="int32_pow2", order="RAN", period=1)


@hypothesis.settings(max_examples=15)
@hypothesis.given(
    states=st.lists(st.integers(0, S - 1), min_size=40, max_size=40),
    actions=st.lists(st.integers(0, A - 1), min_size=40, max_size=40),
    hot=st.booleans(),
    ends=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.0078125, 1, width=32),
    order=st.sampled_from(["SEQ", "RAN"]),
)
def test_any_log(states, actions, hot, ends, seed, alpha, order):
    rng = np.random.default_rng(seed)
    one = np.zeros(40, np.int32)
    columns = (
        one if hot else np.array(states, np.int32),
        one if hot else np.array(actions, np.int32),
        rng.integers(-100, 100, 40).astype(np.float32),
        rng.integers(0, S, 40).astype(np.int32),
        (rng.random(40) >= ends).astype(np.float32),
        rng.integers(0, A, 40).astype(np.int32),
    )
    names = ("state", "action", "reward", "next_state", "discount", "next_action")
    rows = TabularTransition(**dict(zip(names, map(jnp.asarray, columns), strict=True)))
    compare(rows, dpus=3, lanes=4, rule="sarsa", seed=seed, alpha=alpha, order=order)


def test_whole_entries_do_not_depend_on_the_number_of_dpus():
    # Equally many rows of every entry, so that slices end where entries do.
    order = np.tile(np.arange(S * A, dtype=np.int32), 8)
    rows = dataclasses.replace(
        synthetic(S, A, len(order)), state=jnp.asarray(order // A), action=jnp.asarray(order % A)
    )
    one, five = (fit(rows, dpus=n, lanes=1).tables for n in (1, 5))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(five))


# FP32 as users compile it: without LLVM's optimisation FMAs depend on the shape.
@pytest.mark.parametrize("numerics", ["int32_scaled", pytest.param("fp32", marks=pytest.mark.long)])
def test_same_bits_on_one_and_on_eight_devices(numerics):
    setting = {"dpus": 13, "numerics": numerics, "rule": "double_q_learning", "order": "RAN"}
    one, eight = (fit(devices=n, **setting).tables for n in (1, 8))
    np.testing.assert_array_equal(np.asarray(one), np.asarray(eight))


def test_equals_target_blocks_of_a_whole_pass_by_time():
    # By time the lanes of a sorted log are chunks; their targets come from the last merged table.
    rows = synthetic(S, A, 144)
    order = np.argsort(np.asarray(rows.state) * A + np.asarray(rows.action), kind="stable")
    chunks = pim.partition(jax.tree.map(lambda x: x[order], rows), 12, S, A)
    rule = tabular.expected_sarsa(tabular.int32_pow2())
    schedule = pim.MergeSchedule(passes=3)
    by_time = pim.train(chunks, rule=rule, schedule=schedule, target_block=12, backend="jax")
    chunks = pim.partition(rows, 3, S, A, "owner", 4)
    by_owner = pim.train(chunks, rule=rule, schedule=schedule, backend="jax")
    np.testing.assert_array_equal(np.asarray(by_time.tables), np.asarray(by_owner.tables))


@pytest.mark.parametrize("numerics", quick.only(["int32_pow2"], oracle.NUMERICS))
def test_vmap_over_rates_and_seeds_equals_single_runs(numerics):
    run = functools.partial(fit, rule="sarsa_epsilon_greedy", numerics=numerics, order="RAN")
    alphas, seeds = jnp.array([0.1, 0.5], jnp.float32), jnp.array([3, 4], jnp.uint32)
    together = jax.vmap(lambda a, s: run(alpha=a, seed=s).tables)(alphas, seeds)
    for k in range(2):
        alone = np.asarray(run(alpha=alphas[k], seed=int(seeds[k])).tables)
        np.testing.assert_allclose(np.asarray(together[k]), alone, rtol=1e-5)


def test_damped_weights_of_all_lanes_may_come_near_the_limit():
    # With alpha 1 each of 65,520 runs ends at its reward and weighs 32,768, 2**19 short of 2**31.
    dpus, lanes = 4_095, 16
    rows = synthetic(S, A, dpus * lanes)
    none = jnp.zeros_like(rows.state)
    rows = dataclasses.replace(rows, state=none, action=none, discount=rows.discount * 0)
    setting = {"alpha": 1.0, "merge": "damped", "passes": 1, "machine": None}
    table = np.asarray(fit(rows, dpus=dpus, lanes=lanes, **setting).tables)
    encode = oracle.NUMERICS["int32_scaled"]().encode
    total = sum(int(encode(reward)) for reward in np.asarray(rows.reward))
    assert table[0, 0, 0] == oracle.half_away(total, len(rows.reward)) != 0
    assert not np.any(table.reshape(-1)[1:])


def test_a_traced_log_is_partitioned_alike():
    known = fit().tables
    traced = jax.jit(lambda rows: fit(rows).tables)(ROWS)
    np.testing.assert_array_equal(np.asarray(known), np.asarray(traced))


@pytest.mark.parametrize(("dpus", "lanes"), [(3, 4), (13, 16), (130, 1)])
def test_partition_sorts_stably_and_counts_runs(dpus, lanes):
    chunks = pim.partition(ROWS, dpus, S, A, "owner", lanes)
    tagged = list(zip(*(np.asarray(x).tolist() for x in jax.tree.leaves(ROWS)), strict=True))
    tagged.sort(key=lambda row: row[:2])
    most = 0
    for dpu, rows in enumerate(oracle.chunk_rows(tagged, dpus)):
        columns = jax.tree.leaves(
            jax.tree.map(lambda x, d=dpu: np.asarray(x)[d], chunks.transitions)
        )
        found = list(zip(*(x[: len(rows)].tolist() for x in columns), strict=True))
        assert found == rows
        most = max(most, sum(len({r[:2] for r in lane}) for lane in oracle.chunk_rows(rows, lanes)))
    assert chunks.runs == most


def test_bad_input():
    with pytest.raises(ValueError, match="by must be one of time, owner"):
        pim.partition(ROWS, 2, S, A, "state")
    with pytest.raises(ValueError, match="lanes must be at least 1, got 0"):
        pim.partition(ROWS, 2, S, A, "owner", 0)
    for order in ("STR", "RAN_REPLACEMENT"):
        with pytest.raises(ValueError, match=f"order must be SEQ or RAN by owner, .* got {order}"):
            fit(order=order)
    with pytest.raises(ValueError, match="INT32 merge 'damped' allows fewer"):
        fit(synthetic(S, A, 4_096), dpus=4_096, lanes=16, merge="damped", machine=None)


def test_memories_hold_what_a_dpu_has():
    # 20,000 next states of one DPU are 80,000 bytes of values; those of a tenth of them fit.
    rows = synthetic(20_000, 1, 20_000)
    rule = {"rule": tabular.q_learning(), "schedule": pim.MergeSchedule(1), "backend": "jax"}
    with pytest.raises(ValueError, match="of WRAM"):
        pim.train(pim.partition(rows, 1, 20_000, 1, "owner"), **rule)
    few = dataclasses.replace(rows, next_state=rows.next_state % 10)
    one = dataclasses.replace(few, state=few.state % 10)
    assert pim.train(pim.partition(one, 1, 20_000, 1, "owner"), **rule).values.shape == (20_000, 1)


def test_logged_actions_want_only_their_own_values():
    # 10 actions of 2,000 states would be 80,000 bytes; the log has one action in each.
    rows = synthetic(2_000, 10, 20_000)
    rows = dataclasses.replace(rows, next_action=rows.next_action * 0)
    chunks = pim.partition(rows, 8, 2_000, 10, "owner")
    schedule = pim.MergeSchedule(1)
    result = pim.train(chunks, rule=tabular.sarsa(), schedule=schedule, backend="jax")
    assert result.values.shape == (2_000, 10)


def test_what_would_give_wrong_values_is_refused():
    rule = tabular.q_learning()
    one = pim.jax_backend(dpu_mesh(jax.devices()[:1]))

    def whole_tables(program, memory, table, *rest):
        return jnp.zeros((3, program.entries), table.dtype)

    with pytest.raises(ValueError, match="must return"):
        fit(backend=one._replace(name="own", launch=whole_tables))
    own = tabular.build_rule("own", None, lambda nx, q, row, c: q[0][0], resolve=rule.resolve)
    assert own.choice is None
    chunks = pim.partition(ROWS, 3, S, A, "owner")
    with pytest.raises(ValueError, match="needs a choice"):
        pim.train(chunks, rule=own, schedule=pim.MergeSchedule(1), backend="jax")
    with pytest.raises(ValueError, match=r"num_states \* num_actions"):
        pim.partition(ROWS, 3, 60_000, 60_000)
