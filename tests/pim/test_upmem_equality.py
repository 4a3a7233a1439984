"""NumPy = DPU program, launch by launch and bit for bit, whatever the number of tasklets.

That NumPy = JAX = CPU kernels over the same product is test_kernel_equality.py's. FP32 is compared
to the bit too: neither NumPy nor the DPU's compiler contracts a product and a sum.
"""

import dataclasses
import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from rules_and_numerics import rules_and_numerics
from sdk_present import needs
from transitions import ENVIRONMENTS, collected, synthetic

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.orders import NAMES as ORDERS

pytestmark = needs("gcc", "g++")
NUMERICS = tuple(oracle.NUMERICS)
TASKLETS = (1, 11, 16, 24)
DPUS = (1, 7, 64, 200)
PASSES = 2
RATES = {"alpha": 0.3, "gamma": 0.9, "epsilon": 0.25}


@functools.cache
def launcher(program, tasklets, rates):
    """A compiled launch of PASSES passes; with `rates`, of a program that holds them."""
    backend = pim.upmem_backend(tasklets)
    if rates is not None:
        backend = backend.specialise(program, rates)

    @jax.jit
    def run(words, lengths, table, c, seed):
        memory = backend.load(program, words, lengths, c)
        return backend.launch(program, memory, table, c, seed, jnp.uint32(1), PASSES)

    return run


def compare(
    transitions, states, actions, *, rule, numerics, order, block, tasklets, dpus,
    stride=4, seed=9, special=False, rates=RATES,
):  # fmt: skip
    """Launches with each number of tasklets on each number of DPUs against NumPy."""
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    program = tabular.PassProgram(made, tabular.make_order(order, stride), states, actions, block)
    hyperparameters = tabular.Hyperparameters(**rates)
    c = made.coefficients(hyperparameters)
    nx = oracle.NUMERICS[numerics]()
    encoded = oracle.encode(transitions, nx)
    start = oracle.zeros(rule, nx, states, actions)
    scale = 1 if numerics == "fp32" else nx.scale
    start[:] = np.linspace(-3, 7, start.size).reshape(start.shape) * scale
    for count in dpus:
        truth, _ = oracle.launch(
            rule, nx, start, oracle.chunk_rows(encoded, count), order, stride, block,
            oracle.coefficients(nx, **rates), seed, range(1, 1 + PASSES),
        )  # fmt: skip
        assert np.any(truth != start)
        cut = pim.partition(transitions, count, states, actions)
        words = np.asarray(encode_chunks(program, cut))
        # One length of chunks for all numbers of DPUs, so that they share a program.
        words = np.pad(words, ((0, 0), (0, len(encoded) - words.shape[1]), (0, 0)))
        for number in tasklets:
            run = launcher(program, number, hyperparameters if special else None)
            tables = run(words, cut.lengths, start.reshape(-1), c, np.uint32(seed))
            np.testing.assert_array_equal(
                np.asarray(tables).reshape(truth.shape).view(np.uint32),
                truth.view(np.uint32),
                f"{rule} {numerics} {order} block {block}: {count} DPUs, {number} tasklets",
            )


@rules_and_numerics
def test_rules_and_numerics(rule, numerics):
    # Each order and number of tasklets comes up; their product is the slow test's. Of 60 states a
    # chunk visits less than half of the entries, of 6 all.
    index = list(tabular.RULES).index(rule)
    for k, order in enumerate(ORDERS):
        states = (60, 6)[(index + k) % 2]
        compare(
            synthetic(states, 3, 300), states, 3, rule=rule, numerics=numerics, order=order,
            block=(16, 1, 128, 100)[k],
            tasklets=(TASKLETS[(index + k) % 4],), dpus=(7,), special=k % 2 == 0,
        )  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name == "FrozenLake-v1" else pytest.mark.slow)
        for name in ENVIRONMENTS
    ],
)
def test_tasklets_and_dpus(name):
    # Up to eight blocks of RAN on a DPU, more than its ring holds.
    dataset = collected(name, 1_000)
    compare(
        dataset.transitions, dataset.info.num_states, dataset.info.num_actions,
        rule="q_learning", numerics="int32_scaled", order="RAN", block=96,
        tasklets=TASKLETS, dpus=DPUS,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("rule", list(tabular.RULES))
def test_the_product_on_environments_in_turn(rule, numerics):
    first = list(tabular.RULES).index(rule) + NUMERICS.index(numerics)
    for k, order in enumerate(ORDERS):
        dataset = collected(ENVIRONMENTS[(first + k) % len(ENVIRONMENTS)], 300)
        compare(
            dataset.transitions, dataset.info.num_states, dataset.info.num_actions,
            rule=rule, numerics=numerics, order=order, block=16,
            tasklets=TASKLETS, dpus=DPUS,
        )  # fmt: skip


@pytest.mark.long  # builds each program that it draws
@hypothesis.settings(max_examples=5)
@hypothesis.given(
    rule=st.sampled_from(list(tabular.RULES)),
    numerics=st.sampled_from(NUMERICS),
    order=st.sampled_from(ORDERS),
    stride=st.integers(1, 20),
    block=st.sampled_from([1, 2, 7, 64, 200, 1000]),
    actions=st.sampled_from([1, 2, 4, 6, 9]),
    count=st.integers(1, 12),
    num_rows=st.integers(12, 400),
    tasklets=st.integers(1, 24),
    special=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.0078125, 1, width=32),
    gamma=st.floats(0, 0.98828125, width=32),
    epsilon=st.floats(0, 1, width=32),
)
def test_any_program(actions, count, num_rows, tasklets, seed, alpha, gamma, epsilon, **setting):
    rows = synthetic(5, actions, num_rows, seed % 7, rewards=(-100, 100))
    if seed % 2:  # more than 256 different rewards take records of 16 bytes
        rows = dataclasses.replace(rows, reward=jnp.linspace(-90, 90, num_rows))
    compare(
        rows, 5, actions, tasklets=(tasklets,), dpus=(count,), seed=seed,
        rates={"alpha": alpha, "gamma": gamma, "epsilon": epsilon}, **setting,
    )  # fmt: skip
