"""pim.train against the NumPy truth: bit for bit in INT32, within a tolerance in FP32."""

import itertools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import oracle
import pytest
import quick
from kernels_present import needs_kernels
from rules_and_numerics import rules_and_numerics
from transitions import ENVIRONMENTS, collected, synthetic

from accel_rl import pim, tabular
from accel_rl.tabular import PATHS
from pim_emu import dpu_mesh

ONE = dpu_mesh(jax.devices()[:1])
FLAT = pim.jax_backend(ONE, "flat")
# What the kernels compute is compared launch by launch in test_kernel_equality.py.
BACKENDS = [FLAT, pytest.param("cpu", marks=[needs_kernels, pytest.mark.slow])]
MIXED = synthetic(6, 3, 700)


def compare(transitions, num_states, num_actions, num_dpus, backend=FLAT, **setting):
    rule, numerics = setting["rule"], setting["numerics"]
    truth = oracle.train(transitions, num_states, num_actions, num_dpus, **setting)
    chunks = pim.partition(transitions, num_dpus, num_states, num_actions)
    order = tabular.make_order(setting.get("order", "SEQ"), setting.get("stride", 4))
    rates = {k: setting[k] for k in ("alpha", "gamma", "epsilon") if k in setting}
    result = pim.train(
        chunks,
        tabular.Hyperparameters(**rates),
        setting.get("seed", 0),
        rule=tabular.make_rule(rule, tabular.make_numerics(numerics)),
        schedule=pim.MergeSchedule(
            setting.get("passes", 1), setting.get("period", 1), setting.get("merging", "visits")
        ),
        order=order,
        target_block=setting.get("block", 128),
        backend=backend,
    )
    assert result.tables.shape == truth.shape
    if numerics == "fp32" and backend != "cpu":
        # Contraction to FMA changes last bits; over a few hundred updates they stay last bits.
        np.testing.assert_allclose(result.tables, truth, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(np.asarray(result.tables), truth)
    assert np.any(truth != 0)


@pytest.mark.parametrize("backend", BACKENDS, ids=["jax", "cpu"])
@rules_and_numerics
def test_rules_and_numerics(rule, numerics, backend):
    setting = {"block": 16, "passes": 3, "period": 2, "seed": 5, "backend": backend}
    compare(MIXED, 6, 3, 4, rule=rule, numerics=numerics, **setting)


@needs_kernels
def test_fp32_of_native_kernels_equals_numpy_bit_for_bit():
    setting = {"block": 16, "passes": 3, "period": 2, "backend": "cpu"}
    compare(MIXED, 6, 3, 4, rule="q_learning", numerics="fp32", **setting)


FACTORS = (
    ["SEQ", "STR", "RAN", "RAN_REPLACEMENT"],
    list(pim.MERGES),
    [*PATHS, "flat"],
    [(1, 16), (7, 128), (64, 1), (200, 128)],  # 700 rows: of 200 DPUs each has less than a block
    ["q_learning", "sarsa_epsilon_greedy", "double_q_learning", "expected_sarsa"],
)


def every_value():
    """Four runs that hold every value of each factor."""
    return [tuple(values[k] for values in FACTORS) for k in range(4)]


def every_pair():
    """Sixteen runs that hold every pair of values of two factors: the orthogonal array L16(4^5)."""

    def times(a, b):  # in the field of four elements, where a + b is a ^ b
        product = a * (b & 1) ^ a * (b & 2)
        return product ^ 7 if product & 4 else product

    levels = [
        (i, j, *(i ^ times(k, j) for k in (1, 2, 3)))
        for i, j in itertools.product(range(4), repeat=2)
    ]
    return [tuple(FACTORS[n][level] for n, level in enumerate(run)) for run in levels]


@pytest.mark.parametrize(
    ("order", "merging", "path", "dpus_and_block", "rule"),
    [*every_value(), *(pytest.param(*run, marks=pytest.mark.long) for run in every_pair())],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_factors(order, merging, path, dpus_and_block, rule):
    num_dpus, block = dpus_and_block
    compare(
        MIXED, 6, 3, num_dpus, rule=rule, numerics="int32_scaled",
        backend=pim.jax_backend(ONE, path), order=order, block=block, merging=merging,
        passes=5, period=2, seed=11,
    )  # fmt: skip


@pytest.mark.parametrize("name", quick.only(["Taxi-v4", "CliffWalking-v1"], ENVIRONMENTS))
@pytest.mark.parametrize("numerics", quick.only(["int32_scaled"], ["int32_scaled", "int32_pow2"]))
@pytest.mark.parametrize("rule", quick.only(["q_learning"], ["q_learning", "sarsa"]))
def test_environments(name, numerics, rule):
    # Enough passes over Taxi and CliffWalking that c * x would overflow 32 bits.
    dataset = collected(name, 900)
    info = dataset.info
    compare(
        dataset.transitions, info.num_states, info.num_actions, 2,
        rule=rule, numerics=numerics, passes=12, alpha=0.5,
    )  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS, ids=["jax", "cpu"])
@pytest.mark.parametrize(
    ("rule", "order", "merging"),
    [
        pytest.param("q_learning", "STR", "visits", marks=pytest.mark.slow),
        pytest.param("sarsa", "SEQ", "mean", marks=pytest.mark.slow),
        pytest.param("sarsa_epsilon_greedy", "RAN", "damped", marks=pytest.mark.slow),
        pytest.param("expected_sarsa", "RAN", "visited", marks=pytest.mark.slow),
        ("double_q_learning", "RAN_REPLACEMENT", "visits"),
    ],
)
@hypothesis.settings(max_examples=10)
@hypothesis.given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.0078125, 1, width=32),
    gamma=st.floats(0, 0.96875, width=32),
    epsilon=st.floats(0, 1, width=32),
)
def test_any_rates_and_seeds(rule, order, merging, backend, seed, alpha, gamma, epsilon):
    rows = synthetic(3, 2, 150, seed % 5, rewards=(-100, 100))
    compare(
        rows, 3, 2, 2, rule=rule, numerics="int32_scaled", order=order, stride=3, block=8,
        passes=2, merging=merging, backend=backend, seed=seed,
        alpha=alpha, gamma=gamma, epsilon=epsilon,
    )  # fmt: skip
