"""Arrays of slots: dtypes, chunks around the end, and what is said of items that do not fit."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.replay.store import write_rows
from accel_rl.types import Transition


class Item(NamedTuple):
    frame: np.ndarray
    flag: np.ndarray
    small: np.ndarray
    half: np.ndarray
    brain: np.ndarray
    word: np.ndarray
    nothing: np.ndarray


EXAMPLE = Item(
    np.zeros((3, 2), np.uint8),
    np.bool_(False),
    np.int8(0),
    np.zeros(2, np.float16),
    np.zeros(2, jnp.bfloat16),
    np.uint32(0),
    np.zeros((0, 2), np.float32),
)


def items(rng, *lead):
    return Item(
        rng.integers(0, 256, (*lead, 3, 2), np.uint8),
        rng.random(lead) < 0.5,
        rng.integers(-128, 128, lead, np.int8),
        rng.normal(size=(*lead, 2)).astype(np.float16),
        rng.normal(size=(*lead, 2)).astype(jnp.bfloat16),
        rng.integers(0, 2**32, lead, np.uint32),
        np.zeros((*lead, 0, 2), np.float32),
    )


def test_every_leaf_keeps_its_dtype_and_bits():
    made = replay.make(EXAMPLE, 6, 32, num_envs=2, least_size=1)
    rng = np.random.default_rng(0)
    state, add, everything = (
        made.init(),
        jax.jit(functools.partial(made.add, batch_major=False)),
        [None] * 6,
    )
    for steps, row in ((1, 0), (3, 1), (2, 1)):
        added = items(rng, steps, 2)
        state = add(state, added)
        for k in range(steps):
            for env in range(2):
                one = jax.tree.map(lambda x, k=k, env=env: x[k, env], added)
                everything[(row + k) % 3 * 2 + env] = one
    drawn = jax.jit(made.sample)(state, jax.random.key(0))
    want = jax.tree.map(lambda *x: np.stack(x), *(everything[int(k)] for k in drawn.indices))
    for name, found, expected in zip(Item._fields, drawn.batch, want, strict=True):
        assert found.dtype == expected.dtype == getattr(EXAMPLE, name).dtype, name
        np.testing.assert_array_equal(found, expected, name)


@pytest.mark.parametrize("capacity", [1, 2, 7])
def test_chunks_around_the_end(capacity):
    write = jax.jit(lambda data, first, rows: write_rows(data, first, rows, around=True))
    data = {"a": jnp.arange(capacity) + 100, "b": jnp.zeros((capacity, 2), jnp.uint8)}
    for n in range(1, capacity + 1):
        rows = {"a": jnp.arange(n), "b": jnp.ones((n, 2), jnp.uint8) * 7}
        for first in range(capacity):
            where = (first + np.arange(n)) % capacity
            want = jax.tree.map(np.array, data)
            for name in want:
                want[name][where] = rows[name]
            jax.tree.map(np.testing.assert_array_equal, write(data, jnp.int32(first), rows), want)


def test_numbers_of_a_kind_are_cast():
    made = replay.make(Transition(0.0, 0, 0.0, 1.0), 4, 1)
    state = made.add(made.init(), Transition(np.float64(1.5), np.int16(3), 2, np.float32(1)))
    data = state.store.data
    assert (data.observation.dtype, data.action.dtype) == (jnp.float32, jnp.int32)
    assert (data.observation[0], data.action[0], data.reward[0]) == (1.5, 3, 2)


ROW = {"eye": np.zeros((2, 3), np.uint8), "arm": {"angle": np.float32(0)}}


def changed(**leaves):
    item = {"eye": np.zeros((4, 2, 3), np.uint8), "arm": {"angle": np.zeros(4, np.float32)}}
    return {**item, **leaves}


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (changed(eye=np.zeros((4, 3, 2), np.uint8)), ValueError, r"transitions\['eye'\].*\(4, 2,"),
        (changed(eye=np.zeros((2, 3), np.uint8)), ValueError, r"\['eye'\].*got \(2, 3\)"),
        (changed(eye=np.zeros((4, 2, 3))), TypeError, r"\['eye'\] must have dtype uint8, got flo"),
        (changed(eye=np.zeros((4, 2, 3), np.int32)), TypeError, r"\['eye'\].*uint8, got int32"),
        (
            changed(arm={"angle": np.zeros(3, np.float32)}),
            ValueError,
            r"transitions\['arm'\]\['angle'\] must have shape \(4,\) or \(steps, 4,\), got \(3,\)",
        ),
        (changed(arm=np.zeros(4, np.float32)), ValueError, "transitions must have the structure"),
        (changed(leg=np.zeros(4)), ValueError, "transitions must have the structure"),
        (
            changed(eye=np.zeros((5, 4, 2, 3), np.uint8)),
            ValueError,
            "leaves of transitions must have the same number of steps",
        ),
        (
            changed(eye=np.zeros((1, 4, 2, 3), np.uint8)),
            ValueError,
            "leaves of transitions must have the same number of steps",
        ),
    ],
)
def test_items_that_do_not_fit_are_named(item, error, message):
    made = replay.make(ROW, 8, 1, num_envs=4)
    with pytest.raises(error, match=message):
        made.add(made.init(), item)
    with pytest.raises(error, match=message):  # while it is traced, too
        jax.jit(made.add)(made.init(), item)


def test_a_state_of_another_capacity_is_refused():
    state = replay.make(np.float32(0), 16, 1).init()
    with pytest.raises(ValueError, match="state must have 8 slots, got 16"):
        replay.make(np.float32(0), 8, 1).add(state, np.float32(1))


def test_what_is_no_example_or_hyperparameter_is_named():
    for example in (None, {}):
        with pytest.raises(ValueError, match="example must have at least one array or number, got"):
            replay.make(example, 8, 1)
    with pytest.raises(TypeError, match="no hyper-parameter 'alhpa'; did you mean alpha"):
        replay.make(np.float32(0), 8, 1, "prioritised").init(alhpa=1)
    with pytest.raises(TypeError, match="no hyper-parameter 'alpha'"):
        replay.make(np.float32(0), 8, 1).init(alpha=1)


def test_fields_of_transitions_are_named():
    example = Transition(np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1))
    made = replay.make(example, 8, 1)
    bad = Transition(np.zeros(2, np.float32), np.float32(0), np.float32(0), np.float32(1))
    with pytest.raises(TypeError, match=r"transitions\.action must have dtype int32, got float32"):
        made.add(made.init(), bad)
    far = Transition(np.zeros(2, np.float32), np.int64(2**40 + 3), np.float32(0), np.float32(1))
    far = jax.tree.map(np.asarray, far)
    with pytest.raises(ValueError, match=r"transitions\.action must fit int32, got 1099511627779"):
        made.add(made.init(), far)
    bad = Transition(np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1), True)
    with pytest.raises(ValueError, match="structure"):
        made.add(made.init(), bad)


@pytest.mark.parametrize(("steps", "limit"), [(0, 6), (7, 6), (100, 6)])
def test_too_many_steps_at_once(steps, limit):
    example = Transition(np.float32(0), np.int32(0), np.float32(0), np.float32(1))
    made = replay.make(example, 8, 1, n_step=2)
    zeros = jax.tree.map(functools.partial(np.resize, new_shape=steps), example)
    with pytest.raises(
        ValueError, match=f"steps added at once must be from 1 to {limit}, got {steps}"
    ):
        made.add(made.init(), zeros)
