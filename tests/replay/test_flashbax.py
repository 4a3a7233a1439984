"""Buffers with flashbax's interface, against plain Python and NumPy.

`test_flashbax_rival.py` compares them with flashbax itself.
"""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import scipy.stats

from accel_rl import native
from accel_rl.replay import flashbax as fbx
from accel_rl.testing import assert_inplace

KEY = jax.random.key(0)
STEP = {"obs": np.zeros(2, np.int32), "reward": np.float32(0)}
# add_batch_size, sample_sequence_length, period, length of the time axis, steps of each add
CASES = {
    "steps": (1, 1, 1, 7, (2, 3, 4)),
    "overlapping": (3, 3, 1, 7, (2, 2, 3, 5)),
    "period": (2, 4, 2, 12, (3, 3, 3, 3, 3)),
    "apart": (2, 2, 2, 9, (4, 4, 1)),
    "whole axis": (2, 3, 1, 6, (6, 1, 6)),
    "one sequence": (1, 4, 1, 4, (2, 4, 3)),
}


def compiled(buffer):
    """The buffer with compiled functions: op by op, each would be compiled by itself."""
    functions = {name: jax.jit(getattr(buffer, name)) for name in ("add", "sample")}
    if hasattr(buffer, "set_priorities"):
        functions["set_priorities"] = jax.jit(buffer.set_priorities)
    return buffer.replace(**functions)


def draws(buffer, state, number):
    """Draw that many samples, and concatenate them."""
    drawn = jax.jit(jax.vmap(buffer.sample, (None, 0)))(state, jax.random.split(KEY, number))
    return jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), drawn)


def make(prioritised, batch, length, period, axis, samples=2048):
    kind = fbx.make_prioritised_trajectory_buffer if prioritised else fbx.make_trajectory_buffer
    return compiled(kind(batch, samples, length, period, length, max_length_time_axis=axis))


def steps(batch, first, number):
    """Steps of numbers that tell batch element and time, leaves [batch, number, ...]."""
    reward = 1000.0 * np.arange(batch)[:, None] + np.arange(first, first + number)
    obs = np.stack([reward, -reward], axis=-1).astype(np.int32)
    return {"obs": obs, "reward": reward.astype(np.float32)}


def sequences(prioritised, batch, length, period, axis, written):
    """Sequences that may be sampled after so many steps, by their first reward."""
    axis -= axis % period if prioritised else 0
    oldest = max(0, written - axis)
    first = -(-oldest // period) * period if prioritised else oldest
    starts = range(first, written - length + 1, period)
    return {1000 * element + start for element in range(batch) for start in starts}


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_samples_are_whole_sequences_of_the_newest_steps(case, prioritised):
    batch, length, period, axis, adds = CASES[case]
    buffer = make(prioritised, batch, length, period, axis)
    state, written = buffer.init(STEP), 0
    for number in adds:
        state = buffer.add(state, steps(batch, written, number))
        written += number
        assert bool(buffer.can_sample(state)) == (written >= length)
        wanted = sequences(prioritised, batch, length, period, axis, written)
        if not wanted:
            continue
        # An item is missed by all draws with probability below 1e-20.
        drawn = buffer.sample(state, jax.random.fold_in(KEY, written))
        rewards = np.asarray(drawn.experience["reward"])
        assert rewards.shape == (2048, length)
        assert (np.diff(rewards, axis=1) == 1).all()
        assert set(rewards[:, 0].tolist()) == wanted
        obs = np.stack([rewards, -rewards], axis=-1)
        np.testing.assert_array_equal(drawn.experience["obs"], obs)
        if prioritised:
            np.testing.assert_allclose(drawn.probabilities, 1 / len(wanted), rtol=1e-6)


def test_a_state_shows_its_steps_batch_major():
    buffer = make(False, 2, 2, 1, 5)
    state = buffer.add(buffer.add(buffer.init(STEP), steps(2, 0, 4)), steps(2, 4, 3))
    assert int(state.current_index) == 2
    assert bool(state.is_full)
    wanted = np.array([[5, 6, 2, 3, 4], [1005, 1006, 1002, 1003, 1004]])
    np.testing.assert_array_equal(state.experience["reward"], wanted)
    mapped = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    np.testing.assert_array_equal(mapped.experience["obs"][1, ..., 0], wanted)


def test_the_quick_start_of_flashbax():
    buffer = compiled(fbx.make_flat_buffer(max_length=32, min_length=2, sample_batch_size=1))
    state = buffer.init({"obs": jnp.array([0, 0]), "reward": jnp.array(0.0)})
    ready = []
    for start in (1, 4, 7):
        obs = jnp.array([start, start + 1])
        state = buffer.add(state, {"obs": obs, "reward": jnp.array(3.0)})
        ready.append(bool(buffer.can_sample(state)))
    assert ready == [False, False, True]
    pair = buffer.sample(state, jax.random.PRNGKey(0)).experience
    np.testing.assert_array_equal(pair.second["obs"] - pair.first["obs"], [[3, 3]])


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize(("batch", "time"), [(None, None), (None, 3), (2, None), (2, 3)])
def test_axes_of_added_batches(prioritised, batch, time):
    shape = (*(() if batch is None else (batch,)), *(() if time is None else (time,)))
    number = int(np.prod(shape))
    prefix = "make_prioritised_" if prioritised else "make_"
    item = getattr(fbx, prefix + "item_buffer")(
        12, 1, 4, add_sequences=time is not None, add_batches=batch is not None
    )
    item, empty = compiled(item), item.init(jnp.float32(0))
    state = item.add(empty, jnp.arange(number, dtype=jnp.float32).reshape(shape))
    np.testing.assert_array_equal(state.experience[0, :number], np.arange(number))
    assert item.sample(state, KEY).experience.shape == (4,)
    with pytest.raises(ValueError, match="axes"):
        item.add(empty, jnp.zeros((*shape, 2)))
    flat = getattr(fbx, prefix + "flat_buffer")(
        12, 1, 4, add_sequences=time is not None, add_batch_size=batch
    )
    flat, state = compiled(flat), flat.init(jnp.float32(0))
    for first in range(2):
        state = flat.add(state, jnp.full(shape, first, jnp.float32))
    rows = np.repeat([0.0, 1.0], time or 1)
    assert state.experience.shape == (batch or 1, 12 // (batch or 1))
    np.testing.assert_array_equal(state.experience[:, : len(rows)], [rows] * (batch or 1))
    assert flat.sample(state, KEY).experience.second.shape == (4,)


# --- priorities


def filled(number=32, exponent=0.6, samples=1):
    buffer = fbx.make_prioritised_item_buffer(
        number, 1, samples, add_batches=True, priority_exponent=exponent
    )
    buffer = compiled(buffer)
    return buffer, buffer.add(buffer.init(np.float32(0)), np.arange(number, dtype=np.float32))


def test_draws_are_in_proportion_to_powers_of_priorities():
    """Independent draws: chi-square, false-alarm rate 1e-6."""
    buffer, state = filled()
    priorities = np.random.default_rng(1).lognormal(size=32).astype(np.float32)
    state = buffer.set_priorities(state, np.arange(32), priorities)
    wanted = priorities**0.6 / (priorities**0.6).sum()
    drawn = draws(buffer, state, 20_000)
    slots = drawn.indices
    np.testing.assert_allclose(drawn.probabilities, wanted[slots], rtol=1e-5)
    np.testing.assert_array_equal(drawn.experience, slots)
    counts = np.bincount(slots, minlength=32)
    statistic = ((counts - 20_000 * wanted) ** 2 / (20_000 * wanted)).sum()
    assert statistic < scipy.stats.chi2.isf(1e-6, 31)


def test_uniform_draws_are_independent_and_even():
    """Chi-square of items and of neighbouring pairs of draws, false-alarm rate 1e-6 each."""
    buffer = make(False, 1, 1, 1, 8, 40_000)
    state = buffer.add(buffer.init(np.int32(0)), np.arange(8, dtype=np.int32)[None])
    drawn = np.asarray(buffer.sample(state, KEY).experience)[:, 0]
    for counts in (np.bincount(drawn), np.bincount(8 * drawn[::2] + drawn[1::2])):
        statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
        assert statistic < scipy.stats.chi2.isf(1e-6, len(counts) - 1)


def test_new_items_get_the_largest_priority_ever():
    buffer, state = filled(4, 1.0)
    state = buffer.set_priorities(state, np.arange(4), np.float32([0.5, 2.5, 0.5, 0.5]))
    state = buffer.set_priorities(state, np.arange(4), np.full(4, 0.5, np.float32))
    state = buffer.add(state, np.float32([7]))
    drawn = draws(buffer, state, 1000)
    wanted = np.where(drawn.experience == 7, 2.5 / 4, 0.5 / 4)
    np.testing.assert_allclose(drawn.probabilities, wanted)
    assert {0, 1} <= set(np.asarray(drawn.indices).tolist())


def test_priorities_that_are_set():
    buffer, state = filled(4, 1.0)
    indices = np.int32([0, 1, 1, 2, 3, -1, 4, 10**6])
    given = np.float32([0, 5, 3, np.nan, 1, 9, 9, 9])
    drawn = draws(buffer, buffer.set_priorities(state, indices, given), 1000)
    wanted = np.float32([0, 3, 1, 1]) / 5  # NaN changed nothing; the last for item 1 is kept
    assert set(np.asarray(drawn.indices).tolist()) == {1, 2, 3}
    np.testing.assert_allclose(drawn.probabilities, wanted[drawn.indices])
    eager = fbx.make_prioritised_item_buffer(4, 1, 1, priority_exponent=1.0)
    with pytest.raises(ValueError, match="finite"):
        eager.set_priorities(state, indices, given)
    with pytest.raises(ValueError, match="shape"):
        buffer.set_priorities(state, indices, given[:3])


def test_late_priorities_leave_broken_sequences_out():
    buffer = make(True, 1, 3, 1, 6, 256)
    state = buffer.add(buffer.init(STEP), steps(1, 0, 6))
    state = buffer.add(state, steps(1, 6, 1))  # items 5 and 6 % 6 wait for their steps
    state = buffer.set_priorities(state, np.int32([5, 0]), np.float32([100, 100]))
    rewards = buffer.sample(state, KEY).experience["reward"]
    assert set(np.asarray(rewards[:, 0]).tolist()) == {1, 2, 3, 4}
    assert (jnp.diff(rewards, axis=1) == 1).all()


# --- compiled loops


def loop(buffer, new, error):
    """Return a scan in which items are added and sampled, and their priorities set."""

    def step(state, key):
        state = buffer.add(state, new(key))
        drawn = buffer.sample(state, key)
        errors = error(drawn.experience)
        if hasattr(buffer, "set_priorities"):
            state = buffer.set_priorities(state, drawn.indices, errors)
            return state, drawn.probabilities
        return state, errors

    return lambda state, key: jax.lax.scan(step, state, jax.random.split(key, 4))


def normal(*shape):
    return lambda key: jax.random.normal(key, shape)


LOOPS = {
    "item": (
        fbx.make_item_buffer(20_000, 1, 32, add_batches=True),
        normal(8, 4),
        lambda x: jnp.abs(x.sum(-1)),
    ),
    "prioritised item": (
        fbx.make_prioritised_item_buffer(20_000, 1, 32, add_batches=True),
        normal(8, 4),
        lambda x: jnp.abs(x.sum(-1)),
    ),
    "prioritised flat": (
        fbx.make_prioritised_flat_buffer(20_000, 1, 32, add_batch_size=8),
        normal(8, 4),
        lambda x: jnp.abs((x.first + x.second).sum(-1)),
    ),
    "prioritised trajectory": (
        fbx.make_prioritised_trajectory_buffer(8, 32, 4, 2, 4, max_size=20_000),
        normal(8, 3, 4),
        lambda x: jnp.abs(x.sum((1, 2))),
    ),
}


@pytest.mark.parametrize("name", quick.only(["item", "prioritised trajectory"], LOOPS))
def test_loops_copy_nothing(name):
    buffer, new, error = LOOPS[name]
    assert_inplace(loop(buffer, new, error), buffer.init(jnp.zeros(4)), KEY)


def test_loops_without_native_kernels_copy_nothing(monkeypatch):
    monkeypatch.setattr(native, "why_absent", lambda: "absent")
    buffer = fbx.make_prioritised_item_buffer(20_000, 1, 32, add_batches=True)
    run = loop(buffer, normal(8, 4), lambda x: jnp.abs(x.sum(-1)))
    assert_inplace(run, buffer.init(jnp.zeros(4)), KEY)


def test_probabilities_of_an_unused_batch_copy_nothing():
    """Priorities that do not depend on the batch or on its probabilities, which are returned."""
    buffer, new, _ = LOOPS["prioritised item"]
    run = loop(buffer, new, lambda x: jnp.ones(32))
    assert_inplace(run, buffer.init(jnp.zeros(4)), KEY)


def test_seeds_by_vmap_are_the_same_as_one_by_one():
    buffer = fbx.make_prioritised_flat_buffer(40, 1, 4, add_batch_size=2)
    run = loop(buffer, normal(2), lambda x: jnp.abs(x.first + x.second) + 1)
    keys = jax.random.split(KEY, 3)

    def seed(key):
        return run(buffer.init(jnp.float32(0)), key)

    mapped, odds = jax.jit(jax.vmap(seed))(keys)
    states = jax.vmap(lambda _: buffer.init(jnp.float32(0)))(keys)
    donated, _ = jax.jit(jax.vmap(run), donate_argnums=0)(states, keys)
    for k, key in enumerate(keys):
        state, wanted = jax.jit(seed)(key)
        np.testing.assert_array_equal(odds[k], wanted)
        for each in (mapped, donated):
            np.testing.assert_array_equal(each.experience[k], state.experience)


def test_pmap():
    buffer = fbx.make_prioritised_item_buffer(8, 1, 2)
    steps = jnp.arange(6.0).reshape(2, 3)
    states = jax.pmap(buffer.init)(steps[:, 0])
    add = jax.pmap(buffer.add, donate_argnums=0)
    for k in range(3):
        states = add(states, steps[:, k])
    np.testing.assert_array_equal(states.experience[:, 0, :3], steps)
    drawn = jax.pmap(buffer.sample)(states, jax.random.split(KEY, 2))
    picked = np.take_along_axis(np.asarray(steps), np.asarray(drawn.indices), axis=1)
    np.testing.assert_array_equal(drawn.experience, picked)


# --- queue and mixer


def test_a_queue_returns_steps_once_and_in_order():
    queue = fbx.make_trajectory_queue(7, 2, add_sequence_length=3, sample_sequence_length=2)
    add, sample = jax.jit(queue.add), jax.jit(queue.sample)
    state, held, written = queue.init(STEP), collections.deque(), 0
    full = 0
    for choice in np.random.default_rng(2).random(60):
        assert bool(queue.can_add(state)) == (len(held) + 3 <= 7)
        assert bool(queue.can_sample(state)) == (len(held) >= 2)
        assert bool(state.is_full) == (len(held) == 7)
        full += len(held) == 7
        if choice < 0.5 and len(held) + 3 <= 7:
            state = add(state, steps(2, written, 3))
            held.extend(range(written, written + 3))
            written += 3
        elif len(held) >= 2:
            state, drawn = sample(state)
            first = held.popleft(), held.popleft()
            np.testing.assert_array_equal(drawn.experience["reward"][0], first)
            np.testing.assert_array_equal(drawn.experience["reward"][1], np.add(first, 1000))
        assert int(state.write_index) == written % 7
    assert full
    assert state.experience["obs"].shape == (2, 7, 2)


def test_a_queue_is_read_and_written_in_place():
    queue = fbx.make_trajectory_queue(2_000, 8, 5, 5)

    def step(state, key):
        state, drawn = queue.sample(state)
        return queue.add(state, jax.random.normal(key, (8, 5, 4))), drawn.experience

    def run(state, key):
        return jax.lax.scan(step, state, jax.random.split(key, 3))

    assert_inplace(run, queue.init(jnp.zeros(4)), KEY)


def test_a_mixer_takes_random_parts_of_samples():
    """Chi-square of what is taken of a stratified sample, false-alarm rate 1e-6."""
    first, state = filled(16, samples=8)
    second = first
    other = second.add(second.init(np.float32(0)), np.arange(100, 116, dtype=np.float32))
    mixer = fbx.make_mixer([first, second], 8, [1, 2])
    assert bool(mixer.can_sample([state, other]))
    assert not bool(mixer.can_sample([state, second.init(np.float32(0))]))
    sample = jax.jit(jax.vmap(functools.partial(mixer.sample, [state, other])))
    drawn = np.asarray(sample(jax.random.split(KEY, 4_000)).experience)
    assert drawn.shape == (4_000, 8)
    assert (drawn[:, :3] < 100).all()
    assert (drawn[:, 3:] >= 100).all()
    counts = np.bincount(drawn[:, 3:].astype(int).ravel() - 100, minlength=16)
    # Stratified draws vary less than independent ones: the statistic is an upper bound.
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert statistic < scipy.stats.chi2.isf(1e-6, 15)
    wide = fbx.make_mixer([filled(16)[0], second], 8, [2, 1])
    with pytest.raises(ValueError, match="at least 6, got 1"):
        wide.sample([state, other], KEY)
    with pytest.raises(ValueError, match="proportions must be 2"):
        fbx.make_mixer([first, second], 8, [1, 2, 1])


# --- arguments

TRAJECTORY = {
    "add_batch_size": 2,
    "sample_batch_size": 2,
    "sample_sequence_length": 4,
    "period": 1,
    "min_length_time_axis": 4,
}
ITEM = {"max_length": 10, "min_length": 1, "sample_batch_size": 2}


@pytest.mark.parametrize(
    ("function", "arguments", "match"),
    [
        (fbx.make_trajectory_buffer, TRAJECTORY, "either max_size or"),
        (
            fbx.make_trajectory_buffer,
            {**TRAJECTORY, "max_size": 8, "max_length_time_axis": 4},
            "either max_size or",
        ),
        (fbx.make_trajectory_buffer, {**TRAJECTORY, "max_size": 7}, "at most"),
        (
            fbx.make_prioritised_trajectory_buffer,
            {**TRAJECTORY, "period": 3, "max_length_time_axis": 5},
            "at most",
        ),
        (fbx.make_flat_buffer, {**ITEM, "add_batch_size": 6}, "at most"),
        (fbx.make_flat_buffer, {**ITEM, "min_length": 10}, "at most"),
        (fbx.make_item_buffer, {**ITEM, "min_length": 11}, "at most"),
        (fbx.make_item_buffer, {**ITEM, "sample_batch_size": 11}, "sample_batch_size"),
        (fbx.make_prioritised_item_buffer, {**ITEM, "priority_exponent": 1.5}, "exponent"),
    ],
)
def test_bad_sizes(function, arguments, match):
    with pytest.raises(ValueError, match=match):
        function(**arguments)


def test_bad_calls():
    buffer = fbx.make_trajectory_buffer(2, 4, 3, 1, 3, max_length_time_axis=6)
    state = buffer.init(STEP)
    with pytest.raises(ValueError, match="at most 6 steps"):
        buffer.add(state, steps(2, 0, 7))
    with pytest.raises(ValueError, match="shape"):
        buffer.add(state, steps(3, 0, 2))
    with pytest.raises(TypeError, match="must be float32, got int32"):
        buffer.add(state, jax.tree.map(lambda x: x.astype(np.int32), steps(2, 0, 2)))
    items = fbx.make_item_buffer(8, 1, 1, add_sequences=True, add_batches=True)
    pairs = items.init({"a": np.float32(0), "b": np.float32(0)})
    with pytest.raises(ValueError, match="same first axes"):
        items.add(pairs, {"a": np.zeros((2, 3)), "b": np.zeros((3, 2))})
    with pytest.raises(ValueError, match="structure"):
        buffer.add(state, {"reward": np.zeros((2, 1), np.float32)})
    with pytest.raises(ValueError, match="complete"):
        buffer.sample(state, KEY)
    with pytest.warns(UserWarning, match="never sampled"):
        make(True, 2, 2, 3, 6)
