"""Native launches by owner against a plain loop over rows, and as JAX functions."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import quick
from kernels_present import needs_kernels
from rules_and_numerics import rules_and_numerics
from transitions import synthetic

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular import owners
from accel_rl.tabular.passes import native_owned
from pim_emu import device_map, dpu_mesh

pytestmark = needs_kernels
FAILURES = (ValueError, jax.errors.JaxRuntimeError)  # jax may report either
S, A, D, L = 6, 3, 4, 5
LOG = synthetic(S, A, 150)


def program_of(rule, numerics, chunks, order):
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    sizes = chunks.num_states, chunks.num_actions, 1, chunks.lanes, chunks.runs
    return tabular.PassProgram(made, tabular.make_order(order), *sizes)


class Case:
    """A log of which some chunks may be emptied, and a table, in some rule and numerics."""

    def __init__(self, rule="sarsa_epsilon_greedy", numerics="int32_scaled", log=LOG, order="SEQ"):
        self.chunks = pim.partition(log, D, S, A, "owner", L)
        self.program = program_of(rule, numerics, self.chunks, order)
        self.words = encode_chunks(self.program, self.chunks)
        self.lengths = jnp.asarray(self.chunks.lengths).at[1].set(0).at[2].set(3)
        self.dpus = jnp.asarray([7, 0, 3, 2**32 - 1], jnp.uint32)
        self.table = self.program.rule.numerics.encode(
            jnp.asarray(np.random.default_rng(1).normal(size=self.program.entries), jnp.float32)
        )

    def rows(self, dpu):
        return np.asarray(self.words)[dpu, : self.lengths[dpu]]

    def visits(self, seed=5, first=2, passes=2):
        lanes = native_owned.examine(self.program, self.words, self.lengths, self.dpus)
        return native_owned.visit_counts(self.program, lanes, seed, first, passes)

    def launch(self, alpha=0.3, epsilon=0.25, seed=5, first=2, passes=2, **more):
        c = self.program.rule.coefficients(tabular.Hyperparameters(alpha, 0.9, epsilon))
        rows = {"words": self.words, "lengths": self.lengths, "dpus": self.dpus}
        lanes = native_owned.examine(self.program, **rows | more)
        run = functools.partial(native_owned.launch, self.program, lanes, self.table, c)
        return run(jnp.uint32(seed), jnp.uint32(first), passes)


def plain(case, alpha=0.3, epsilon=0.25, seed=5, first=2, passes=2):
    """Values of runs and their visits, row by row; only values of next states are JAX's."""
    rule, nx = case.program.rule, oracle.NUMERICS[case.program.rule.numerics.name]()
    c = rule.coefficients(tabular.Hyperparameters(alpha, 0.9, epsilon))
    ahead = np.asarray(owners.value_table(case.program, case.table, c)).reshape(S + 1, -1)
    scalar = np.float32 if nx.dtype == np.float32 else int
    table = np.asarray(case.table).reshape(rule.tables, S * A)
    out = np.zeros((D, rule.tables, case.program.runs), nx.dtype)
    visits = np.zeros(out.shape, np.uint32)
    for d in range(D):
        begin = 0
        for lane, rows in enumerate(oracle.chunk_rows(list(case.rows(d)), L)):
            entries = np.array([row[0] for row in rows], int)
            slots = begin + np.cumsum(np.diff(entries, prepend=entries[:1]) != 0)
            out[d, :, slots] = table[:, entries].T
            begin += len(np.unique(slots))
            number = (int(case.dpus[d]) * L + lane) % 2**32
            for p in range(first, first + passes):
                order, draws = range(len(rows)), oracle.stream(seed, p, number, 2)
                if case.program.order.name == "RAN":
                    # Of a row the oracle looks at state and action.
                    pairs = [divmod(int(entry), A) for entry in entries]
                    order = oracle.rotated(pairs, oracle.stream(seed, p, number, 1))
                for row in order:
                    (_, ahead_of, reward, meta), slot = rows[row], slots[row]
                    column, k = 0, 0
                    if rule.choice == "logged":
                        column = meta & 0xFFFF
                    elif rule.choice != "none":
                        u, v = draws.draw(), draws.draw()
                        if rule.choice == "table":
                            column = k = u >> 31
                        elif u >> 16 < int(c.explore):
                            column = 1 + ((v >> 16) * A >> 16)
                    state = ahead_of // A if meta >> 16 & 1 else S
                    target = nx.add(scalar(reward.view(nx.dtype)), scalar(ahead[state, column]))
                    q = scalar(out[d, k, slot])
                    move = nx.mul(scalar(c.alpha), nx.sub(target, q))
                    out[d, k, slot] = nx.add(q, move)
                    visits[d, k, slot] += 1
    return out.reshape(D, -1), visits.reshape(D, -1)


@pytest.mark.parametrize("order", ["SEQ", "RAN"])
@rules_and_numerics
def test_equals_a_loop_over_rows(rule, numerics, order):
    case = Case(rule, numerics, order=order)
    values, visits = plain(case)
    np.testing.assert_array_equal(case.launch(), values)
    np.testing.assert_array_equal(case.visits(), visits)


def test_equals_a_loop_over_rows_of_one_entry():
    one = jnp.zeros_like(LOG.state)
    case = Case("q_learning", "fp32", dataclasses.replace(LOG, state=one, action=one))
    assert case.program.runs == L
    np.testing.assert_array_equal(case.launch(passes=3), plain(case, passes=3)[0])


@pytest.mark.parametrize("argument", quick.only(["alpha", "seed"], ["alpha", "epsilon", "seed"]))
def test_vmap_equals_single_calls(argument):
    case = Case(order="RAN")
    many = {
        "alpha": jnp.asarray([0.1, 0.5, 0.9]),
        "epsilon": jnp.asarray([0.0, 0.5, 1.0]),
        "seed": jnp.asarray([1, 2, 3], jnp.uint32),
    }[argument]
    together = jax.vmap(lambda x: case.launch(**{argument: x}))(many)
    for k in range(3):
        np.testing.assert_array_equal(together[k], case.launch(**{argument: many[k]}))
    assert len(np.unique(np.asarray(together), axis=0)) == 3


def test_split_over_devices():
    case = Case("double_q_learning")

    def part(words, lengths, dpus):
        return case.launch(words=words, lengths=lengths, dpus=dpus)

    mapped = device_map(part, 0, dpu_mesh(jax.devices()[:2]))
    split = jax.jit(mapped)(case.words, case.lengths, case.dpus)
    np.testing.assert_array_equal(split, case.launch())


@pytest.mark.parametrize("order", ["SEQ", "RAN"])
def test_training_equals_jax(order):
    chunks = pim.partition(LOG, D, S, A, "owner", L)
    rule, schedule = tabular.double_q_learning(tabular.int32_pow2()), pim.MergeSchedule(3, 2)
    native, jax_ = (
        pim.train(chunks, rule=rule, schedule=schedule, order=order, backend=name).tables
        for name in ("cpu", "jax")
    )
    assert np.any(np.asarray(native) != 0)
    np.testing.assert_array_equal(np.asarray(native), np.asarray(jax_))


def test_a_rule_that_draws_nothing_needs_no_kernel_of_its_own():
    def smallest(nx, ahead, row, c):
        return functools.reduce(jnp.minimum, ahead[0])

    case = Case("q_learning")
    made = tabular.build_rule("pessimist", case.program.rule.numerics, smallest, choice="none")
    case.program = case.program._replace(rule=made)
    np.testing.assert_array_equal(case.launch(), plain(case)[0])


def test_derivatives_are_refused():
    case = Case("q_learning", "fp32")
    with pytest.raises(TypeError, match="cannot be differentiated: use backend='jax'"):
        jax.grad(lambda alpha: case.launch(alpha=alpha).sum())(0.5)


def test_a_bad_row_is_refused_by_the_call():
    case = Case()
    words = case.words.at[3, 2, 1].set(S * A)
    with pytest.raises(
        FAILURES, match=r"row 2 of chunk 4294967295: s' \* A must be in \[0, 16\)|-1"
    ):
        jax.block_until_ready(case.launch(words=words))


def test_programs_that_the_kernels_cannot_run():
    case = Case("sarsa_epsilon_greedy")
    other = case.program.rule._replace(resolve=lambda row, *_: row)
    for program, reason in (
        (case.program._replace(rule=other), "rule 'sarsa_epsilon_greedy' has no native kernel"),
        (case.program._replace(num_states=2**29), "entries up to|values of next states up to"),
        (
            case.program._replace(rule=tabular.q_learning(tabular.int32_scaled(scale=1_000))),
            "numerics 'int32_scaled' with these settings has no native kernel",
        ),
    ):
        with pytest.raises(ValueError, match=reason):
            native_owned.examine(program, case.words, case.lengths, case.dpus)


def test_lanes_may_be_longer_than_the_shuffle_of_ran_by_time_allows():
    program = Case(order="RAN").program
    rows = 65_536 * 128 + 1  # a row more than blocks of 128 that a shuffle can number
    shapes = ((1, rows, 4), jnp.int32), ((1,), jnp.int32), ((1,), jnp.uint32)
    operands = [jax.ShapeDtypeStruct(*shape) for shape in shapes]
    jax.eval_shape(functools.partial(native_owned.examine, program), *operands)
