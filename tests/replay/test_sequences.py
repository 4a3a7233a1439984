"""Runs of consecutive steps: which there are, and where they are cut."""

import functools

import jax
import numpy as np
import pytest
import quick
from conformance import transitions_of
from reference import Memory, play, sequence_validity

from accel_rl import replay

LENGTH, ROWS, ENVS = 4, 11, 2


@pytest.mark.parametrize("sampler", quick.only(["prioritised"], ["uniform", "prioritised"]))
def test_any_items_come_as_runs(sampler):
    example = {"id": np.int32(0), "tag": np.zeros(2, bool)}
    made = replay.make(
        example, ROWS * ENVS, 64, sampler, num_envs=ENVS, sequence_length=LENGTH, least_size=1
    )
    memory = Memory(ROWS * ENVS, ENVS, LENGTH)
    add, sample, update = map(jax.jit, (made.add, made.sample, made.update))
    state = made.init()
    for t in range(30):
        ids = np.int32([t * ENVS, t * ENVS + 1])
        state = add(state, {"id": ids, "tag": np.stack([ids % 2 == 0, ids % 3 == 0], -1)})
        memory.add([ids.tolist()])
        assert made.size(state) == len(memory.complete())
        if not memory.complete():
            continue
        drawn = sample(state, jax.random.key(t))
        assert drawn.batch.valid.shape == (64, LENGTH)
        assert np.all(drawn.batch.valid)
        starts = [memory.item_at(int(slot)) for slot in drawn.indices]
        assert set(starts) <= set(memory.complete())
        expected = [[(s + j) * ENVS + env for j in range(LENGTH)] for s, env in starts]
        np.testing.assert_array_equal(drawn.batch.steps["id"], expected)
        np.testing.assert_array_equal(
            drawn.batch.steps["tag"], np.stack([np.mod(expected, k) == 0 for k in (2, 3)], -1)
        )
        state = update(state, drawn, np.ones(64, np.float32))


@pytest.mark.parametrize("has_final", quick.only([False], [True, False]))
def test_runs_of_transitions_are_cut_where_episodes_stop(has_final):
    logs = play(np.random.default_rng(2), 60, ENVS, shape=(2,))
    example = jax.tree.map(lambda x: x[0, 0], transitions_of([[log[0] for log in logs]], has_final))
    made = replay.make(
        example, ROWS * ENVS, 64, num_envs=ENVS, sequence_length=LENGTH, least_size=1
    )
    add, sample = jax.jit(made.add), jax.jit(made.sample)
    memory = Memory(ROWS * ENVS, ENVS, LENGTH)
    state = made.init()
    cut = 0
    for t in range(0, 60, 3):  # three steps at once
        rows = [[log[t + j] for log in logs] for j in range(3)]
        state = add(state, transitions_of(rows, has_final))
        memory.add(rows)
        if not memory.complete():
            continue
        runs = (drawn := sample(state, jax.random.key(t))).batch
        for k, slot in enumerate(drawn.indices):
            start, env = memory.item_at(int(slot))
            assert (start, env) in memory.complete()
            steps = logs[env][start : start + LENGTH]
            valid = sequence_validity(logs[env], start, LENGTH)
            np.testing.assert_array_equal(runs.valid[k], valid)
            cut += not all(valid)
            for field in ("observation", "reward", "discount", "truncated", "action"):
                expected = [getattr(step, field) for step in steps]
                np.testing.assert_array_equal(getattr(runs.steps, field)[k], expected)
            if has_final:
                expected = [step.next_observation for step in steps]
                np.testing.assert_array_equal(runs.steps.next_observation[k], expected)
            else:
                assert runs.steps.next_observation is None
    assert cut > 100


@pytest.mark.parametrize("sampler", ["uniform", "prioritised"])
@pytest.mark.parametrize("period", quick.only([3], [2, 3, 11]))
def test_starts_lie_a_period_apart(period, sampler):
    made = replay.make(
        np.int32(0),
        ROWS * ENVS,
        64,
        sampler,
        num_envs=ENVS,
        sequence_length=LENGTH,
        sequence_period=period,
        least_size=1,
    )
    memory = Memory(ROWS * ENVS, ENVS, LENGTH)
    add = jax.jit(functools.partial(made.add, batch_major=False))
    sample = jax.jit(made.sample)
    state, met = made.init(), set()
    for t in range(0, 36, 2):
        ids = np.arange(2 * t, 2 * t + 4, dtype=np.int32).reshape(2, 2)
        state = add(state, ids)
        closed = [[(t + j) % ROWS % period != 0] * ENVS for j in range(2)]
        memory.add(ids.tolist(), closed=closed)
        expected = memory.probabilities()
        drawn = sample(state, jax.random.key(t))
        if not expected:
            np.testing.assert_array_equal(drawn.probabilities, 0)
            np.testing.assert_array_equal(drawn.weights, 0)
            continue
        met |= set(expected)
        assert {int(slot) for slot in drawn.indices} <= set(expected)
        np.testing.assert_allclose(drawn.probabilities, 1 / len(expected), rtol=1e-6)
        assert len(expected) > 4 or set(expected) == {int(slot) for slot in drawn.indices}
    assert met == {row * ENVS + env for row in range(0, ROWS, period) for env in range(ENVS)}


@pytest.mark.parametrize("sampler", ["uniform", "prioritised"])
def test_complete_runs_of_which_none_is_a_start(sampler):
    made = replay.make(
        np.int32(0), 11, 4, sampler, sequence_length=4, sequence_period=11, least_size=1
    )
    add = jax.jit(made.add)
    state = add(made.init(), np.zeros(6, np.int32))
    assert made.can_sample(state)
    state = add(state, np.zeros(6, np.int32))  # the only start is overwritten
    assert made.size(state) == 8
    assert not made.can_sample(state)


@pytest.mark.long  # compiles a memory of its own
def test_uniform_does_not_look_at_priorities():
    """Not even where it keeps a flag for each slot."""
    made = replay.make(np.int32(0), 8, 4, sequence_length=1, sequence_period=2, least_size=1)
    state = jax.jit(made.add)(made.init(), np.zeros(8, np.int32), np.zeros(8, np.float32))
    np.testing.assert_array_equal(
        jax.jit(made.sample)(state, jax.random.key(0)).probabilities, 0.25
    )


def test_runs_of_one_step():
    made = replay.make(np.int32(0), 5, 8, sequence_length=1, least_size=1)
    state = jax.jit(made.add)(made.init(), np.int32([3, 4]))
    drawn = jax.jit(made.sample)(state, jax.random.key(0))
    assert drawn.batch.steps.shape == drawn.batch.valid.shape == (8, 1)
    assert set(np.ravel(drawn.batch.steps)) == {3, 4}
