"""The benchmark measures what it says: its rivals compute the same, and claims need a rival."""

import os
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import quick
from kernels_present import needs_kernels
from sdk_present import needs

from accel_rl import pim
from accel_rl.types import MDP, TabularTransition

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import tabular as benchmark
import tabular_policy
from tabular_baselines import LANES, Baselines
from tabular_systems import CPass, JaxPass, KernelPass, Log, Problem, check_agreement

needs_gcc = needs("gcc")  # compiles the C baselines
STATES, ACTIONS, ROWS, CHUNKS = 5, 4, 59, 3  # chunks of 20, 20 and 19 rows
ENTRIES = STATES * ACTIONS
# Entries of either sign up to here: differences of int32_scaled stay within an int32, those of
# int32_pow2 do not, and saturate.
LARGEST = {"fp32": 10, "int32_scaled": 2**28, "int32_pow2": 2**31 - 1}


@pytest.fixture(scope="module")
def log():
    draw = np.random.default_rng(5)

    def integers(high):
        return jnp.asarray(draw.integers(high, size=ROWS), jnp.int32)

    transitions = TabularTransition(
        state=integers(STATES),
        action=integers(ACTIONS),
        reward=jnp.asarray(draw.uniform(-20, 20, ROWS), jnp.float32),
        next_state=integers(STATES),
        discount=jnp.asarray(draw.random(ROWS) < 0.8, jnp.float32),
        next_action=integers(ACTIONS),
    )
    outcome = jnp.zeros((STATES, ACTIONS, 1))
    mdp = MDP(outcome, outcome, outcome, outcome, jnp.zeros(STATES))
    return Log("random", mdp, transitions)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("libraries")


def random_tables(numerics, *shape):
    largest = LARGEST[numerics]
    draws = np.random.default_rng(7).uniform(-largest, largest, shape)
    return draws.astype(np.float32 if numerics == "fp32" else np.int32)


def assert_same(numerics, actual, expected):
    if numerics == "fp32":
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)


@needs_gcc
@pytest.mark.parametrize("block", quick.only([8], [1, 8]))
@pytest.mark.parametrize("numerics", ["fp32", "int32_scaled", "int32_pow2"])
def test_c_learns_what_jax_learns(log, directory, numerics, block):
    problem = Problem(log, ROWS, CHUNKS, numerics, block)
    loops = Baselines(directory, numerics, ACTIONS, block)
    alphas = np.linspace(0.05, 0.9, LANES, dtype=np.float32)
    start = random_tables(numerics, LANES, CHUNKS, ENTRIES)
    expected = JaxPass(problem, "reference", alphas)
    expected._tables = jnp.asarray(start)
    expected()
    for kind in ("sequential", "prefetching", "lanes"):
        actual = CPass(loops, problem, kind, alphas)
        moved = np.moveaxis(start[None], 1, 3) if kind == "lanes" else start
        np.copyto(actual._tables, moved)
        np.testing.assert_array_equal(actual.tables, start)
        actual()
        assert_same(numerics, actual.tables, expected.tables)


@needs_kernels
@pytest.mark.parametrize("replicas", [1, 3])
def test_kernels_learn_what_jax_learns_at_every_call(log, replicas):
    problem = Problem(log, ROWS, CHUNKS, "int32_scaled", 8)
    alphas = np.linspace(0.05, 0.9, replicas, dtype=np.float32)
    expected, actual = JaxPass(problem, "reference", alphas), KernelPass(problem, alphas)
    check_agreement({"kernel": actual, "jax": expected})
    first = actual.tables.copy()
    actual()  # starts from zeros again
    np.testing.assert_array_equal(actual.tables, first)


@needs_gcc
@pytest.mark.parametrize("numerics", quick.only(["fp32"], ["fp32", "int32_scaled"]))
def test_threads_learn_what_the_sequential_loop_learns(log, directory, numerics):
    alpha = np.asarray([0.3], np.float32)
    loops = Baselines(directory, numerics, ACTIONS, 1)
    start = random_tables(numerics, ENTRIES)
    rows = ROWS - 1  # even: two threads and two chunks get the same halves
    problem = Problem(log, rows, 1, numerics, 1)
    rates = problem.rates(alpha)
    arguments = np.asarray(rates.alpha).item(), np.asarray(rates.gamma).item()

    def sequential(num_chunks):
        run = CPass(loops, Problem(log, rows, num_chunks, numerics, 1), "sequential", alpha)
        run._tables[:] = start
        run()
        return run.tables[0]

    words = np.asarray(problem.words)[0]
    table = start.copy()
    loops.shared_table(words, table, *arguments, threads=1)
    np.testing.assert_array_equal(table, sequential(1)[0])

    table = start.copy()
    loops.private_tables(words, table, *arguments, threads=2)
    halves, visits = jnp.asarray(sequential(2)), jnp.ones((2, ENTRIES), jnp.uint32)
    mean = pim.merge_tables("mean", halves, jnp.asarray(start), visits, jnp.float32(0.3), 2)
    assert_same(numerics, table, np.asarray(mean))


def test_systems_that_disagree_are_refused(log):
    problem = Problem(log, ROWS, CHUNKS, "fp32", 1)
    one, other = (JaxPass(problem, "reference", np.float32([alpha])) for alpha in (0.1, 0.11))
    with pytest.raises(RuntimeError, match="other and one learned different tables"):
        check_agreement({"one": one, "other": other})


def report_with(*systems):
    """A report of three rounds in which "slow" takes 2, 4 and 6 s of CPU, "fast" 1 s."""
    cpu = {"slow": [2, 4, 6], "fast": [1, 1, 1]}
    timings = {name: common.Timing(np.float64(cpu[name]), np.ones(3)) for name in systems}
    report = common.Report(())
    report.add_rates("case", timings)
    report.add_ratio("case", "fast", "slow", timings)
    return report


def test_a_ratio_is_the_median_over_rounds():
    ratio = report_with("fast", "slow").find("case", "fast / slow", f"ratio of {common.PER_CORE}")
    assert ratio.value == 4
    assert ratio.spread == (3, 5)


@pytest.mark.parametrize(("bound", "holds"), [(3.9, True), (4.1, False)])
def test_a_claim_compares_its_ratio_with_the_bound(bound, holds):
    report = report_with("fast", "slow")
    report.claim("fast enough", bound, ["case"], "fast", "slow")
    (claim,) = report.as_json()["claims"]
    known = {"claim": "fast enough", "value": 4.0, "bound": bound, "holds": holds}
    assert known.items() <= claim.items()
    assert [claim[name][:2] for name in ("ours", "rival")] == [("case", "fast"), ("case", "slow")]


@pytest.mark.parametrize("ran", ["fast", "slow"])
def test_a_claim_is_null_without_one_of_the_two(ran):
    report = report_with(ran)
    report.claim("fast enough", 0.0, ["case"], "fast", "slow")
    assert report.claims == [common.Claim("fast enough", None, 0.0, None)]


def test_a_claim_over_several_cases_names_the_best_and_needs_all():
    report = report_with("fast", "slow")
    timings = {name: common.Timing(np.full(3, 2.0), np.ones(3)) for name in ("fast", "slow")}
    report.add_rates("even", timings)
    report.add_ratio("even", "fast", "slow", timings)
    report.claim("fast", 4.0, ["even", "case"], "fast", "slow")
    report.claim("fast", 4.0, ["even", "case", "missing"], "fast", "slow")
    places = [("case", name, common.PER_CORE) for name in ("fast", "slow")]
    assert report.claims == [
        common.Claim("fast (best: case)", 4.0, 4.0, True, ours=places[0], rival=places[1]),
        common.Claim("fast", None, 4.0, None),
    ]


def test_times_to_the_policy_are_compared_within_a_basis_and_where_both_arrive():
    report, case = common.Report((), "", seeds="0"), tabular_policy.policy_case("Taxi")
    seconds = {
        tabular_policy.OURS["measured"]: 0.2,
        "C sequential": 0.1,
        "accel_rl cpu, by time": 0.5,
        tabular_policy.OURS["modelled"]: 0.01,
    }
    for system, value in seconds.items():
        report.add(case, system, tabular_policy.SECONDS, "s", [value])
    tabular_policy.policy_claims(report, ["Taxi", "FrozenLake"])
    found = {claim.rival[1]: (claim.value, claim.holds) for claim in report.claims}
    assert found == {"C sequential": (0.5, False), "accel_rl cpu, by time": (2.5, True)}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system holds no threads")
def test_one_core_holds_every_thread_and_lets_go():
    before = os.sched_getaffinity(0)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with common.one_core():
            held = [os.sched_getaffinity(int(each)) for each in os.listdir("/proc/self/task")]
        assert len(held) >= 2
        assert set(map(frozenset, held)) == {frozenset({max(before)})}
        assert os.sched_getaffinity(thread.native_id) == os.sched_getaffinity(0) == before
    finally:
        stop.set()
        thread.join()


def test_without_gcc_the_library_is_measured_and_nothing_is_claimed(log, directory, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(benchmark.native, "why_absent", lambda: "built without a compiler")
    monkeypatch.setattr(common, "SAMPLE_SECONDS", 0.0)
    for name, value in {
        "ENVIRONMENTS": ("random", "random"),
        "NUMERICS": ("int32_scaled",),
        "BLOCKS": (1,),
        "NUM_ROWS": ROWS,
        "NUM_DPUS": CHUNKS,
    }.items():
        monkeypatch.setattr(benchmark, name, value)
    report = common.Report(("jax",))
    benchmark.chunk_passes(report, log, directory / "absent", rounds=2)
    assert [record.system for record in report.records] == [benchmark.FLAT]
    assert report.records[0].value > 0
    benchmark.claims(report)
    assert report.claims
    assert all(claim.value is None and claim.holds is None for claim in report.claims)
