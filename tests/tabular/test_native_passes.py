"""Native launches as JAX functions: transformations, and what they refuse."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from kernels_present import needs_kernels
from transitions import synthetic

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.passes import native
from pim_emu import device_map, dpu_mesh

pytestmark = needs_kernels
FAILURES = (ValueError, jax.errors.JaxRuntimeError)  # jax may report either
S, A, D = 6, 3, 4
RULE = tabular.make_rule("sarsa_epsilon_greedy", tabular.int32_scaled())
PROGRAM = tabular.PassProgram(RULE, tabular.make_order("RAN"), S, A, 16)
CHUNKS = pim.partition(synthetic(S, A, 300), D, S, A)
WORDS, LENGTHS = encode_chunks(PROGRAM, CHUNKS), CHUNKS.lengths
DPUS = jnp.arange(D, dtype=jnp.uint32)
TABLE = RULE.init(S, A).reshape(-1)


def launch(alpha=0.3, epsilon=0.25, seed=5, first=0, passes=2, **more):
    c = RULE.coefficients(tabular.Hyperparameters(alpha, 0.9, epsilon))
    values = {"words": WORDS, "lengths": LENGTHS, "dpus": DPUS, "table": TABLE, **more}
    table = values.pop("table")
    rows = native.examine(PROGRAM, **values)
    return native.launch(PROGRAM, rows, table, c, jnp.uint32(seed), jnp.uint32(first), passes)


ARGUMENTS = ("alpha", "epsilon", "seed", "first", "table", "words")


@pytest.mark.parametrize("argument", quick.only(["seed", "table", "words"], ARGUMENTS))
def test_vmap_over_any_operand_equals_single_calls(argument):
    many = {
        "alpha": jnp.asarray([0.1, 0.5, 0.9]),
        "epsilon": jnp.asarray([0.0, 0.5, 1.0]),
        "seed": jnp.asarray([1, 2, 3], jnp.uint32),
        "first": jnp.asarray([0, 1, 7], jnp.uint32),
        "table": jnp.stack([TABLE, TABLE + 5_000, TABLE - 70_000]),
        "words": jnp.stack([WORDS, WORDS[::-1], WORDS[:, ::-1]]),
    }[argument]
    lengths = jnp.minimum(LENGTHS, 70) if argument == "words" else LENGTHS  # no padding moves in

    def one(value):
        return launch(**{argument: value, "lengths": lengths})

    together = jax.jit(jax.vmap(one))(many)
    assert together.shape == (3, D, S * A)
    for k in range(3):
        np.testing.assert_array_equal(together[k], one(many[k]))
    assert len(np.unique(np.asarray(together), axis=0)) == 3


@pytest.mark.long  # compiles twice
def test_nested_vmap_folds_in_the_order_of_the_axes():
    alphas = jnp.linspace(0.1, 0.9, 6).reshape(2, 3)
    nested = jax.vmap(jax.vmap(launch))(alphas)
    flat = jax.vmap(launch)(alphas.reshape(-1))
    np.testing.assert_array_equal(nested.reshape(flat.shape), flat)


def test_a_loop_of_launches_equals_one_launch_of_as_many_passes():
    one = jnp.stack([TABLE] * D)

    def body(k, tables):
        def step(table, words, length, dpu):
            c = RULE.coefficients(tabular.Hyperparameters(0.3, 0.9, 0.25))
            rows = native.examine(PROGRAM, words[None], length[None], dpu[None])
            return native.launch(PROGRAM, rows, table, c, jnp.uint32(5), k, 1)[0]

        return jax.vmap(step)(tables, WORDS, LENGTHS, DPUS)

    looped = jax.jit(lambda: jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(4), body, one))()
    np.testing.assert_array_equal(looped, launch(passes=4))


def test_split_over_devices():
    mesh = dpu_mesh(jax.devices()[:2])

    def part(words, lengths, dpus):
        return launch(words=words, lengths=lengths, dpus=dpus)

    split = jax.jit(device_map(part, 0, mesh))(WORDS, LENGTHS, DPUS)
    np.testing.assert_array_equal(split, launch())


def test_results_do_not_depend_on_threads():
    """Enough work for several threads; one chunk at a time is too little for a second one."""
    many = pim.partition(synthetic(S, A, 60_000), 300, S, A)
    words = encode_chunks(PROGRAM, many)
    dpus = jnp.arange(300, dtype=jnp.uint32)
    together = launch(words=words, lengths=many.lengths, dpus=dpus)
    for d in (0, 1, 150, 299):
        alone = launch(words=words[d, None], lengths=many.lengths[d, None], dpus=dpus[d, None])
        np.testing.assert_array_equal(together[d], alone[0])


@pytest.mark.parametrize("transform", [jax.grad, jax.jacfwd, jax.jacrev])
def test_derivatives_are_refused(transform):
    rule = tabular.q_learning()
    program = PROGRAM._replace(rule=rule)
    table = rule.init(S, A).reshape(-1)

    def total(alpha):
        c = rule.coefficients(tabular.Hyperparameters(alpha))
        rows = native.examine(program, WORDS, LENGTHS, DPUS)
        return native.launch(program, rows, table, c, jnp.uint32(0), jnp.uint32(0), 1).sum()

    with pytest.raises(TypeError, match="cannot be differentiated: use backend='jax'"):
        transform(total)(0.5)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("words", WORDS.astype(jnp.float32), TypeError, "words must be int32, got float32"),
        (
            "words",
            WORDS[..., :3],
            ValueError,
            r"words must have shape \(4, 75, 4\), got \(4, 75, 3\)",
        ),
        ("lengths", LENGTHS[:2], ValueError, r"lengths must have shape \(4,\), got \(2,\)"),
        ("dpus", LENGTHS, TypeError, "dpus must be uint32, got int32"),
        ("table", TABLE[1:], ValueError, r"table must have shape \(18,\), got \(17,\)"),
        ("table", TABLE.astype(jnp.float32), TypeError, "table must be int32, got float32"),
    ],
)
def test_wrong_operands_are_refused_before_tracing_ends(name, value, error, message):
    with pytest.raises(error, match=message):
        launch(**{name: value})


def test_a_chunk_too_long_for_its_order_is_refused():
    words = jax.ShapeDtypeStruct((1, 65_536 * 128 + 1, 4), jnp.int32)
    with pytest.raises(ValueError, match="at most 8388608 rows, got 8388609"):
        jax.eval_shape(lambda w: native.examine(PROGRAM, w, LENGTHS[:1], DPUS[:1]), words)


@pytest.mark.parametrize("length", [-1, WORDS.shape[1] + 1])
def test_lengths_that_only_the_call_knows_are_refused_by_it(length):
    message = rf"length of chunk 2 must be in \[0, {WORDS.shape[1]}\], got {length}"
    with pytest.raises(FAILURES, match=message):
        launch(lengths=LENGTHS.at[2].set(length)).block_until_ready()


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (0, S * A, r"s \* A \+ a must be in \[0, 18\), got 18"),
        (0, -1, r"s \* A \+ a must be in \[0, 18\), got -1"),
        (1, S * A - A + 1, r"s' \* A must be in \[0, 16\), got 16"),
        (1, -3, r"s' \* A must be in \[0, 16\), got -3"),
        (3, A, r"a' must be in \[0, 3\), got 3"),
    ],
)
def test_rows_outside_the_tables_are_refused_before_any_is_used(word, value, message):
    bad = WORDS.at[2, 7, word].set(value).at[3, 1, word].set(value)
    with pytest.raises(FAILURES, match=f"row 7 of chunk 2: {message}"):
        launch(words=bad).block_until_ready()
    # Padding is never read, so it may hold anything.
    shorter = jnp.minimum(LENGTHS, 7)
    bad = WORDS.at[:, 7:, word].set(value)
    np.testing.assert_array_equal(
        launch(words=bad, lengths=shorter), launch(words=WORDS, lengths=shorter)
    )


@pytest.mark.parametrize("devices", [1, 8])
def test_training_on_traced_rows_that_are_out_of_range_fails_and_says_where(devices):
    backend = pim.cpu_backend(dpu_mesh(jax.devices()[:devices]))

    @jax.jit
    def train(state):
        columns = dataclasses.replace(CHUNKS.transitions, state=state)
        chunks = dataclasses.replace(CHUNKS, transitions=columns)
        return pim.train(chunks, rule=RULE, schedule=pim.MergeSchedule(1), backend=backend).tables

    state = CHUNKS.transitions.state
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"row 3 of chunk 1: s \* A \+ a must be"):
        train(state.at[1, 3].set(S)).block_until_ready()
    assert train(state).any()


def test_rows_examined_for_other_tables_are_refused():
    rows = native.examine(PROGRAM._replace(num_states=S + 1), WORDS, LENGTHS, DPUS)
    c = RULE.coefficients(tabular.Hyperparameters())
    message = r"rows were examined for tables of \(7, 3\), not of \(6, 3\)"
    with pytest.raises(ValueError, match=message):
        native.launch(PROGRAM, rows, TABLE, c, 0, 0, 1)
    with pytest.raises(ValueError, match=message):
        native.visit_counts(PROGRAM, rows, 0, 0, 1)


@pytest.mark.parametrize(
    "setting", [{"target_block": 2**31}, {"order": tabular.make_order("STR", 2**31)}]
)
def test_numbers_beyond_32_bits_are_refused(setting):
    with pytest.raises(ValueError, match="up to 2147483647, got 2147483648"):
        native.examine(PROGRAM._replace(**setting), WORDS, LENGTHS, DPUS)


def test_subnormals_are_kept():
    rule = tabular.q_learning()
    program = tabular.PassProgram(rule, tabular.make_order("SEQ"), 1, 1, 1)
    words = jnp.zeros((1, 1, 4), jnp.int32)  # reward 0, the end of an episode
    rows = native.examine(program, words, jnp.ones(1, jnp.int32), jnp.zeros(1, jnp.uint32))
    c = rule.coefficients(tabular.Hyperparameters(alpha=0.5))
    start = np.float32([3e-38])
    learned = np.asarray(native.launch(program, rows, jnp.asarray(start), c, 0, 0, 10))
    truth = start
    for _ in range(10):
        truth = truth + np.float32(0.5) * (np.float32(0) - truth)
    assert 0 < truth[0] < np.finfo(np.float32).tiny
    np.testing.assert_array_equal(learned.view(np.uint32)[0], truth.view(np.uint32))


def test_vmap_over_nothing():
    assert jax.vmap(launch)(jnp.zeros(0)).shape == (0, D, S * A)
