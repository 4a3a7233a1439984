"""NumPy = JAX = native kernels, launch by launch: over rules, orders, numerics, blocks, chunks.

INT32 is compared bit for bit, and so is FP32 of the kernels with NumPy, since neither contracts.
JAX's FP32 may contract (see test_fp32_bits.py), and is compared within a tolerance.
"""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from kernels_present import needs_kernels
from rules_and_numerics import rules_and_numerics
from transitions import ENVIRONMENTS, collected, synthetic

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.orders import NAMES as ORDERS
from accel_rl.tabular.passes import native
from pim_emu import dpu_mesh

pytestmark = needs_kernels
ONE = dpu_mesh(jax.devices()[:1])
NUMERICS = tuple(oracle.NUMERICS)
CHUNK_COUNTS = (1, 7, 64, 200)
PASSES = 2
SEED = 9


@functools.cache
def launcher(kind, program):
    """A compiled launch of PASSES passes: (words, lengths, table, coefficients, seed) -> tables."""
    backend = pim.cpu_backend(ONE) if kind == "cpu" else pim.jax_backend(ONE)

    @jax.jit
    def run(words, lengths, table, c, seed):
        memory = backend.load(program, words, lengths, c)
        return backend.launch(program, memory, table, c, seed, jnp.uint32(1), PASSES)

    @jax.jit
    def visits(words, lengths, c, seed):
        memory = backend.load(program, words, lengths, c)
        return backend.visits(program, memory, c, seed, jnp.uint32(1), PASSES)

    return run, visits


def padded(program, transitions, num_chunks, chunks, rows):
    """Words [chunks, rows, 4] and lengths of fewer and shorter chunks: one compilation for all."""
    cut = pim.partition(transitions, num_chunks, program.num_states, program.num_actions)
    words = np.asarray(encode_chunks(program, cut))
    lengths = np.zeros(chunks, np.int32)
    lengths[:num_chunks] = cut.lengths
    wide = ((0, chunks - num_chunks), (0, rows - words.shape[1]), (0, 0))
    return np.pad(words, wide), lengths


def compare(transitions, states, actions, *, rule, numerics, order, block, counts, kinds, **more):
    """Launches of each kind against NumPy, for each number of chunks."""
    rates = {"alpha": 0.3, "gamma": 0.9, "epsilon": 0.25, **more}
    seed, stride = rates.pop("seed", SEED), rates.pop("stride", 4)
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    chosen = tabular.make_order(order, stride)
    program = tabular.PassProgram(made, chosen, states, actions, block)
    c = made.coefficients(tabular.Hyperparameters(**rates))
    nx = oracle.NUMERICS[numerics]()
    encoded = oracle.encode(transitions, nx)
    start = oracle.zeros(rule, nx, states, actions)
    start[:] = np.asarray(np.linspace(-3, 7, start.size)).reshape(start.shape) * (
        1 if numerics == "fp32" else nx.scale
    )
    for count in counts:
        truth, visits = oracle.launch(
            rule, nx, start, oracle.chunk_rows(encoded, count), order, stride, block,
            oracle.coefficients(nx, **rates), seed, range(1, 1 + PASSES),
        )  # fmt: skip
        assert np.any(truth != start)
        words, lengths = padded(program, transitions, count, max(counts), len(encoded))
        for kind in kinds:
            run, count_visits = launcher(kind, program)
            tables = run(words, lengths, start.reshape(-1), c, np.uint32(seed))
            tables = np.asarray(tables)[:count].reshape(truth.shape)
            what = f"{kind}: {rule} {numerics} {order} block {block} chunks {count}"
            if numerics == "fp32" and kind == "jax":
                np.testing.assert_allclose(tables, truth, rtol=2e-5, atol=2e-5, err_msg=what)
            else:
                np.testing.assert_array_equal(tables, truth, what)
            counted = count_visits(words, lengths, c, np.uint32(seed))
            np.testing.assert_array_equal(counted[:count], visits.reshape(count, -1), what)


@rules_and_numerics
def test_kernels_equal_numpy(rule, numerics):
    rows = synthetic(6, 3, 150)
    for order in ORDERS:
        for block in (1, 16):
            compare(
                rows, 6, 3, rule=rule, numerics=numerics, order=order, block=block,
                counts=(1, 7), kinds=("cpu",),
            )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("rule", list(tabular.RULES))
def test_the_product_on_environments_in_turn(rule, numerics):
    first = list(tabular.RULES).index(rule) + NUMERICS.index(numerics)
    for k, order in enumerate(ORDERS):
        dataset = collected(ENVIRONMENTS[(first + k) % len(ENVIRONMENTS)], 300)
        for block in (1, 128):
            compare(
                dataset.transitions, dataset.info.num_states, dataset.info.num_actions,
                rule=rule, numerics=numerics, order=order, block=block,
                counts=CHUNK_COUNTS, kinds=("cpu", "jax"),
            )  # fmt: skip


@pytest.mark.long  # compiles each program that it draws
@hypothesis.settings(max_examples=6)
@hypothesis.given(
    rule=st.sampled_from(list(tabular.RULES)),
    numerics=st.sampled_from(NUMERICS),
    order=st.sampled_from(ORDERS),
    stride=st.integers(1, 20),
    block=st.sampled_from([1, 2, 7, 64, 1000]),
    actions=st.sampled_from([1, 2, 4, 6, 9]),
    count=st.integers(1, 12),
    num_rows=st.integers(12, 400),
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.0078125, 1, width=32),
    gamma=st.floats(0, 0.98828125, width=32),
    epsilon=st.floats(0, 1, width=32),
)
def test_any_program_equals_numpy(rule, actions, count, num_rows, seed, **setting):
    rows = synthetic(5, actions, num_rows, seed % 7, rewards=(-100, 100))
    compare(rows, 5, actions, rule=rule, counts=(count,), kinds=("cpu",), seed=seed, **setting)


@rules_and_numerics
@pytest.mark.parametrize(
    ("order", "actions", "block"),
    [("SEQ", 4, 1), ("RAN", 6, 16), pytest.param("SEQ", 3, 16, marks=pytest.mark.slow)],
)
def test_replicas_equal_single_runs_bit_for_bit(rule, numerics, order, actions, block):
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    program = tabular.PassProgram(made, tabular.make_order(order), 6, actions, block)
    chunks = pim.partition(synthetic(6, actions, 300), 3, 6, actions)
    words = encode_chunks(program, chunks)
    dpus = jnp.arange(3, dtype=jnp.uint32)
    table = made.init(6, actions).reshape(-1)

    @jax.jit
    def run(alpha, gamma):
        c = made.coefficients(tabular.Hyperparameters(alpha, gamma, 0.25))
        rows = native.examine(program, words, chunks.lengths, dpus)
        return native.launch(program, rows, table, c, SEED, 0, PASSES)

    # 70 replicas fill one tile of 64 lanes and part of another.
    alphas, gammas = np.linspace(0.05, 0.9, 70), np.linspace(0.3, 0.95, 70)
    together = np.asarray(jax.jit(jax.vmap(run))(alphas, gammas))
    assert len(np.unique(together, axis=0)) > 60
    for k in (0, 1, 63, 64, 69):
        np.testing.assert_array_equal(together[k], run(alphas[k], gammas[k]))
