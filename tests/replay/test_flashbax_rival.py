"""The same calls to flashbax and to our buffers of the same interface; skipped without flashbax."""

import inspect

import jax
import numpy as np
import pytest

from accel_rl.replay import flashbax as ours

rival = pytest.importorskip("flashbax")


@pytest.fixture(autouse=True)
def implicit_promotion():
    """Let flashbax mix dtypes, which these tests otherwise forbid."""
    with jax.numpy_dtype_promotion("standard"):
        yield


MAKERS = [name for name in ours.__all__ if name.startswith("make_")]
STEP = {"obs": np.zeros(2, np.int32), "reward": np.float32(0)}
TRAJECTORY = {
    "add_batch_size": 2,
    "sample_batch_size": 1024,
    "sample_sequence_length": 3,
    "period": 2,
    "min_length_time_axis": 4,
    "max_length_time_axis": 10,
}
ITEM = {"max_length": 12, "min_length": 3, "add_sequences": True}
# constructor, its arguments, batch axis of added steps
CASES = [
    ("trajectory", TRAJECTORY, 2),
    ("prioritised_trajectory", TRAJECTORY, 2),
    ("prioritised_flat", {**ITEM, "sample_batch_size": 12}, None),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("flat", {**ITEM, "sample_batch_size": 12, "add_batch_size": 2}, 2),
            ("item", {**ITEM, "sample_batch_size": 12, "add_batches": True}, 2),
            ("prioritised_item", {**ITEM, "sample_batch_size": 12}, None),
        )
    ),
]


@pytest.mark.parametrize("name", MAKERS)
def test_constructors_take_the_same_arguments(name):
    def parameters(module):
        found = inspect.signature(getattr(module, name)).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    assert parameters(ours) == parameters(rival)


def steps(batch, first, number):
    reward = np.arange(first, first + number) + 1000.0 * np.arange(batch or 1)[:, None]
    obs = np.stack([reward, -reward], axis=-1).astype(np.int32)
    found = {"obs": obs, "reward": reward.astype(np.float32)}
    return found if batch else jax.tree.map(lambda x: x[0], found)


def described(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), x.shape, x.dtype) for path, x in leaves]


def sampleable(drawn):
    """Sampled items, by all their numbers, with their probabilities (1 where there are none)."""
    odds = getattr(drawn, "probabilities", np.ones(drawn_size(drawn)))
    leaves = [np.asarray(x).reshape(len(odds), -1) for x in jax.tree.leaves(drawn.experience)]
    rows = np.concatenate(leaves, axis=1)
    return {tuple(row): float(p) for row, p in zip(rows, odds, strict=True)}


def drawn_size(drawn):
    return len(jax.tree.leaves(drawn.experience)[0])


@pytest.mark.parametrize(("kind", "arguments", "batch"), CASES)
def test_the_same_calls_sample_the_same_items(kind, arguments, batch):
    buffers = [getattr(module, f"make_{kind}_buffer")(**arguments) for module in (ours, rival)]
    states = [buffer.init(STEP) for buffer in buffers]
    # Many keys, so that each item is drawn but with probability below 1e-20.
    keys = jax.random.split(jax.random.key(3), 1 if batch and "trajectory" in kind else 100)
    samplers = [jax.jit(jax.vmap(buffer.sample, (None, 0))) for buffer in buffers]
    adders = [jax.jit(buffer.add) for buffer in buffers]

    def compare():
        drawn = [sample(state, keys) for sample, state in zip(samplers, states, strict=True)]
        mine, theirs = (jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), x) for x in drawn)
        assert described(mine) == described(theirs)
        mine_odds, odds = sampleable(mine), sampleable(theirs)
        assert mine_odds.keys() == odds.keys()
        np.testing.assert_allclose([mine_odds[row] for row in odds], list(odds.values()), rtol=1e-5)
        return mine, theirs

    written = 0
    for number in (1, 2, 3, 5, 4):
        new = steps(batch, written, number)
        states = [add(state, new) for add, state in zip(adders, states, strict=True)]
        written += number
        ready = [bool(b.can_sample(s)) for b, s in zip(buffers, states, strict=True)]
        assert ready[0] == ready[1]
        assert int(states[0].current_index) == int(states[1].current_index)
        assert bool(states[0].is_full) == bool(states[1].is_full)
        if ready[0]:
            compare()
    jax.tree.map(np.testing.assert_array_equal, states[0].experience, states[1].experience)
    if kind.startswith("prioritised"):
        drawn = compare()[0]
        indices = np.unique(np.asarray(drawn.indices))
        # The largest to the power of 0.6 is 8.00002, and 8 where flashbax rounds it down.
        priorities = np.linspace(1, 32.0001, len(indices), dtype=np.float32)
        states = [
            buffer.set_priorities(state, indices, priorities)
            for buffer, state in zip(buffers, states, strict=True)
        ]
        compare()
        # Sequences that this add completes begin with the largest priority so far.
        states = [
            buffer.add(state, steps(batch, written, 1))
            for buffer, state in zip(buffers, states, strict=True)
        ]
        compare()


@pytest.mark.parametrize(("axis", "added", "read"), [(7, 3, 2), (6, 2, 3)])
def test_queues_agree(axis, added, read):
    queues = [module.make_trajectory_queue(axis, 2, added, read) for module in (ours, rival)]
    states = [queue.init(STEP) for queue in queues]
    written = 0
    for _ in range(12):
        flags = [
            (bool(q.can_add(s)), bool(q.can_sample(s)), bool(s.is_full), int(s.write_index))
            for q, s in zip(queues, states, strict=True)
        ]
        assert flags[0] == flags[1]
        if flags[0][0]:
            new = steps(2, written, added)
            states = [q.add(s, new) for q, s in zip(queues, states, strict=True)]
            written += added
        elif flags[0][1]:
            read_both = [q.sample(s) for q, s in zip(queues, states, strict=True)]
            states = [state for state, _ in read_both]
            mine, theirs = (sample for _, sample in read_both)
            assert described(mine) == described(theirs)
            jax.tree.map(np.testing.assert_array_equal, mine.experience, theirs.experience)
    jax.tree.map(np.testing.assert_array_equal, states[0].experience, states[1].experience)


def test_new_items_of_flashbax_get_an_integer_priority():
    """The difference that the docstring states: found in 0.1.3, to be dropped with a release."""
    found = []
    for module in (ours, rival):
        buffer = module.make_prioritised_item_buffer(4, 1, 4, priority_exponent=1.0)
        state = buffer.add(buffer.init(np.float32(0)), np.float32(0))
        state = buffer.set_priorities(state, np.int32([0]), np.float32([1.75]))
        state = buffer.add(state, np.float32(1))
        keys = jax.random.split(jax.random.key(0), 100)
        drawn = jax.jit(jax.vmap(buffer.sample, (None, 0)))(state, keys)
        found.append(float(drawn.probabilities[drawn.experience == 1][0]))
    np.testing.assert_allclose(found, [1.75 / 3.5, 1 / 2.75], rtol=1e-6)
