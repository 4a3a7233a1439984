"""The sum tree in hardware: bit for bit what NumPy and the library's JAX tree compute, and when."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rtl import verilated
from rtl.verilated import RESET, needs_verilator, requests, simulate

from accel_rl.replay import sum_tree

pytestmark = needs_verilator

SAMPLE, UPDATE, INSERT, READ = range(4)
HIT = 2**63
OPERATIONS = 10_000
SHAPES = {
    "K16": {"K": 16, "DEPTH": 3, "WIDTH": 16},
    "K4": {"K": 4, "DEPTH": 4, "WIDTH": 32},
    "K2": {"K": 2, "DEPTH": 6, "WIDTH": 16},
    "one level": {"K": 16, "DEPTH": 1, "WIDTH": 32},
}
QUICK = "K4"  # Verilator builds each
shapes = pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, id=name, marks=() if name == QUICK else pytest.mark.long)
        for name, shape in SHAPES.items()
    ],
)


class Leaves:
    """A plain array of priorities; sampling is a search in the cumulated sums."""

    def __init__(self, leaves):
        self.values = np.zeros(leaves, np.uint64)
        self.next_slot = 0

    def __call__(self, operation, a, value):
        """Index, value with hit, total: what the hardware answers."""
        index, hit = int(a), 0
        if operation == SAMPLE:
            ends = np.cumsum(self.values)
            hit = int(a < ends[-1])
            index = int(np.searchsorted(ends, a, side="right")) if hit else 0
        if operation == INSERT:
            index = self.next_slot
            self.next_slot = (index + 1) % len(self.values)
        old = int(self.values[index]) if operation != SAMPLE or hit else 0
        if operation in (UPDATE, INSERT):
            self.values[index] = value
        return index, old | hit * HIT, int(self.values.sum())


def leaves_of(shape):
    return shape["K"] ** shape["DEPTH"]


def random_stream(shape, values, rng, operations=OPERATIONS):
    """Operations and what they must answer: prefixes all over the total, and beyond it."""
    model = Leaves(leaves_of(shape))
    kinds = rng.choice(4, operations, p=(0.45, 0.3, 0.2, 0.05))
    # Few indices half of the time, so that operations on one path follow each other.
    spread = np.where(rng.random(operations) < 0.5, leaves_of(shape), 2)
    indices = rng.integers(0, spread)
    table, expected, total = np.zeros((operations, 3), np.uint64), [], 0
    for i, kind in enumerate(kinds):
        a = indices[i]
        if kind == SAMPLE:
            ends = np.cumsum(model.values)
            spots = rng.integers(0, max(total, 1) + (total >> 6)), rng.choice(ends)
            a = max(spots[rng.integers(2)] - rng.integers(2), 0)  # or where a leaf starts, or ends
        table[i] = kind, a, values(rng)
        expected.append(model(kind, table[i, 1], table[i, 2]))
        total = expected[-1][2]
    return table, np.array(expected, np.uint64)


def answers(responses):
    return np.stack([responses.x, responses.y, responses.z], axis=-1)


def full_range(shape):
    largest = 2 ** shape["WIDTH"] - 1

    def draw(rng):
        """Zeros and the largest value often: sums then have no bit to spare."""
        return rng.choice((0, largest, rng.integers(0, largest, endpoint=True)))

    return draw


@shapes
def test_equals_cumulated_sums_over_the_full_range(shape):
    table, expected = random_stream(shape, full_range(shape), np.random.default_rng(1))
    program = verilated.simulator("sum_tree", **shape)
    at_once = simulate(program, requests(*table.T))
    np.testing.assert_array_equal(answers(at_once), expected)
    # Back to back: a clock each, whatever follows what.
    assert at_once.cycles == len(table) + 2 * shape["DEPTH"] + 2


@shapes
def test_waits_change_nothing(shape):
    rng = np.random.default_rng(2)
    table, expected = random_stream(shape, full_range(shape), rng, 2_000)
    wait, hold = (np.where(rng.random(2_000) < 0.4, rng.integers(0, 9, 2_000), 0) for _ in "wh")
    stream = requests(*table.T, wait=wait, hold=hold)
    responses = simulate(verilated.simulator("sum_tree", **shape), stream)
    np.testing.assert_array_equal(answers(responses), expected)
    assert responses.cycles > 1.5 * len(table)


@functools.partial(jax.jit, static_argnums=0)
def jax_answers(leaves, kinds, slots, weights, positions):
    """For each operation in turn: slot and probability of a draw, and the total after a write."""

    def step(tree, operation):
        kind, slot, weight, position = operation
        words = jnp.zeros((2, 1), jnp.uint32)
        drawn, probability = sum_tree.draw(tree, position[None], words)
        # A slot off the end is left out.
        slot = jnp.where(kind == SAMPLE, jnp.int32(leaves), slot)
        tree = sum_tree.assign(tree, slot[None], weight[None])
        return tree, (drawn[0], probability[0], sum_tree.total(tree))

    operations = (kinds, slots, weights, positions)
    tree, rows = jax.lax.scan(step, sum_tree.init(leaves), operations)
    return sum_tree.leaves(tree), rows


@shapes
def test_equals_the_jax_tree(shape):
    """Priorities are integers below 2**22 in sum, which float32 adds without rounding."""
    leaves, rng = leaves_of(shape), np.random.default_rng(3)
    kinds = rng.choice([SAMPLE, UPDATE], OPERATIONS).astype(np.int32)
    slots = rng.integers(0, np.where(rng.random(OPERATIONS) < 0.5, leaves, 3)).astype(np.int32)
    top = min(2**22 // leaves, 2 ** shape["WIDTH"])
    weights = rng.integers(0, top, OPERATIONS) * (rng.random(OPERATIONS) < 0.8)
    positions = (rng.integers(0, 2**24, OPERATIONS) * 2.0**-24).astype(np.float32)
    final, (drawn, probabilities, totals) = jax.tree.map(
        np.asarray,
        jax_answers(leaves, kinds, slots, weights.astype(np.float32), positions),
    )

    before = np.append(np.float32(0), totals[:-1])
    # Sums of integers compare with a prefix as with its whole part.
    prefixes = np.floor(positions * before).astype(np.uint64)
    a = np.where(kinds == SAMPLE, prefixes, slots.astype(np.uint64))
    reads = requests(READ, np.arange(leaves))
    found = simulate(
        verilated.simulator("sum_tree", **shape),
        np.concatenate([requests(kinds, a, weights), reads]),
    )
    np.testing.assert_array_equal(found.z[:OPERATIONS].astype(np.float32), totals)
    np.testing.assert_array_equal(found.y[OPERATIONS:].astype(np.float32), final[:leaves])
    samples = (kinds == SAMPLE) & (before > 0)
    assert samples.sum() > OPERATIONS / 3
    np.testing.assert_array_equal(found.x[:OPERATIONS][samples], drawn[samples])
    assert (found.y[:OPERATIONS][samples] >= HIT).all()
    value = (found.y[:OPERATIONS] % HIT).astype(np.float32)
    np.testing.assert_array_equal(value[samples] / before[samples], probabilities[samples])


@shapes
def test_a_sample_sees_the_update_before_it(shape):
    """Each pair in two clocks in a row: the whole total moves to a leaf, which is then drawn."""
    rng, leaves = np.random.default_rng(4), leaves_of(shape)
    slots = np.repeat(rng.integers(0, leaves, 300), 3)
    slots[2::3] = slots[::3]
    stream = requests(
        np.tile([UPDATE, SAMPLE, UPDATE], 300),
        np.where(np.arange(900) % 3 == 1, 6, slots),
        np.tile([7, 0, 0], 300),
    )
    found = simulate(verilated.simulator("sum_tree", **shape), stream)
    np.testing.assert_array_equal(found.x[1::3], slots[::3])
    np.testing.assert_array_equal(found.y[1::3], np.uint64(HIT + 7))
    np.testing.assert_array_equal(found.z.reshape(-1, 3), np.tile([7, 7, 0], (300, 1)))


@shapes
def test_reset_empties_the_tree(shape):
    """With operations under way, and from the middle of a stream."""
    leaves = leaves_of(shape)
    start = requests(READ, 0)
    fill = requests(INSERT, 0, np.arange(1, leaves + 1) % 2 ** shape["WIDTH"])
    after = np.concatenate([requests(SAMPLE, 0), requests(READ, np.arange(leaves)), fill[:2]])
    stream = np.concatenate([start, fill, requests(RESET, 3), after])
    found = simulate(verilated.simulator("sum_tree", **shape), stream)
    last = slice(1 + leaves + 1, 1 + leaves + 1 + 1 + leaves)
    lost = found.taken[: 1 + leaves] > found.given[: 1 + leaves]
    assert lost.sum() == 2 * shape["DEPTH"] + 2  # all that the pipeline held
    assert not found.y[last].any()
    assert not found.z[last].any()
    np.testing.assert_array_equal(found.x[-2:], [0, 1])  # inserts start over
    # Ready when the memories are cleared: a row of leaves each clock. Reset itself takes 2.
    assert found.taken[0] == 2 + leaves // shape["K"] + 1


@pytest.mark.long  # builds every shape
def test_latency_of_one_operation():
    for shape in SHAPES.values():
        found = simulate(verilated.simulator("sum_tree", **shape), requests(UPDATE, 1, 1))
        assert found.cycles == 2 * shape["DEPTH"] + 3


@pytest.mark.parametrize(
    "shape", [{}, *SHAPES.values(), {"K": 2, "DEPTH": 1, "WIDTH": 1}, {"K": 64, "DEPTH": 4}]
)
def test_lint(shape):
    assert verilated.lint("sum_tree", **shape) == ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"K": 3}, "K must be a power of two from 2, got 3"),
        ({"K": 1}, "K must be a power of two from 2, got 1"),
        ({"DEPTH": 0}, "DEPTH must be at least 1, got 0"),
        ({"WIDTH": 0}, "Error"),  # Verilator stops before it can say
        ({"WIDTH": 33}, "WIDTH must be 1 to 32, got 33"),
        ({"K": 32, "DEPTH": 5}, r"DEPTH * log2(K) must be at most 24, got 25"),
    ],
)
def test_parameters_refused(parameters, message):
    assert message in verilated.lint("sum_tree", **parameters)
