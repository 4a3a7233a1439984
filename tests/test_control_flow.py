"""Work that runs only when due, counted by what it tells the host; reads before writes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.control_flow import cond_under_vmap, order_after
from accel_rl.testing import assert_inplace

X = jnp.arange(4, dtype=jnp.float32)


class Counter:
    def __init__(self):
        self.runs = 0

    def note(self):
        self.runs += 1


@pytest.fixture
def counter():
    return Counter()


def program(counter):
    def fn(default, x, y):
        jax.debug.callback(counter.note)
        return {"a": x * 2 + default["a"], "b": default["b"] + y}

    def run(due, x, y=3):
        default = {"a": jnp.zeros_like(x), "b": jnp.int32(7)}
        return cond_under_vmap(due, fn, default, x, jnp.asarray(y, jnp.int32))

    return run


def expected(due, x, y=3):
    return {"a": np.where(due, 2 * x, 0), "b": np.where(due, 7 + y, 7)}


def check(found, due, x, y=3):
    jax.tree.map(np.testing.assert_array_equal, found, expected(due, x, y))
    assert found["a"].dtype == jnp.float32
    assert found["b"].dtype == jnp.int32


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_alone(counter, wrap):
    run = wrap(program(counter))
    check(run(jnp.bool_(False), X), False, X)
    jax.effects_barrier()
    assert counter.runs == 0
    check(run(jnp.bool_(True), X), True, X)
    jax.effects_barrier()
    assert counter.runs == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_vmap(counter, wrap):
    """It runs if any is due; each element gets its own."""
    run = wrap(jax.vmap(program(counter)))
    many = jnp.stack([X, X + 1, X + 2])
    check_rows(run(np.zeros(3, bool), many), np.zeros(3, bool), many)
    jax.effects_barrier()
    assert counter.runs == 0
    due = np.array([False, True, False])
    check_rows(run(due, many), due, many)
    jax.effects_barrier()
    assert counter.runs > 0


def check_rows(found, due, x, y=3):
    np.testing.assert_array_equal(found["a"], np.where(due[..., None], 2 * x, 0))
    np.testing.assert_array_equal(found["b"], np.where(due, 7 + np.asarray(y), 7))


@pytest.mark.parametrize(
    ("axes", "due", "x", "y"),
    [
        ((None, 0, None), np.bool_(True), jnp.stack([X, X + 1]), 3),
        ((0, None, None), np.array([True, False]), X, 3),
        ((0, None, 0), np.array([True, False]), X, np.int32([1, 2])),
        ((None, None, 0), np.bool_(True), X, np.int32([1, 2])),
        ((None, 0, 0), np.bool_(False), jnp.stack([X, X + 1]), np.int32([1, 2])),
    ],
)
def test_arguments_that_are_not_batched(counter, axes, due, x, y):
    found = jax.jit(jax.vmap(program(counter), in_axes=axes))(due, x, y)
    shared = np.broadcast_to(due, 2), np.broadcast_to(x, (2, 4)), np.broadcast_to(y, 2)
    check_rows(found, *shared)
    jax.effects_barrier()
    assert (counter.runs > 0) == bool(np.any(due))


def test_nested_vmap(counter):
    run = jax.jit(jax.vmap(jax.vmap(program(counter))))
    many = jnp.arange(24, dtype=jnp.float32).reshape(2, 3, 4)
    check_rows(run(np.zeros((2, 3), bool), many), np.zeros((2, 3), bool), many)
    jax.effects_barrier()
    assert counter.runs == 0
    due = np.array([[False, True, False], [False, False, False]])
    check_rows(run(due, many), due, many)
    jax.effects_barrier()
    assert counter.runs > 0


def test_scan_and_vmap_of_scan(counter):
    """In a loop, under vmap: 10 steps of which 2 are due, for some element."""

    def fn(default, x):
        jax.debug.callback(counter.note)
        return default + x

    def loop(due, x):
        def step(total, due):
            return cond_under_vmap(due, fn, total, x), None

        return jax.lax.scan(step, jnp.float32(0), due)[0]

    due = np.zeros((3, 10), bool)
    assert float(jax.jit(loop)(due[0], jnp.float32(2))) == 0
    jax.effects_barrier()
    assert counter.runs == 0
    due[0, 3] = due[1, 3] = due[1, 7] = True
    assert float(jax.jit(loop)(due[1], jnp.float32(2))) == 4
    jax.effects_barrier()
    assert counter.runs == 2
    counter.runs = 0
    found = jax.jit(jax.vmap(loop))(due, jnp.float32([2, 3, 5]))
    np.testing.assert_array_equal(found, [2, 6, 0])
    jax.effects_barrier()
    assert counter.runs in (2, 6)  # one or three elements at a step, of two steps


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_compiled_program_branches(depth):
    """A `cond` under vmap would be a select, and sort each time."""

    def sort(default, x):
        return jnp.sort(x)

    def run(due, x):
        return cond_under_vmap(due, sort, x, x)

    shapes = [(), (3,), (2, 3)][depth]
    run = functools.reduce(lambda f, _: jax.vmap(f), range(depth), run)
    text = jax.jit(run).lower(jnp.zeros(shapes, bool), jnp.zeros((*shapes, 9))).compile().as_text()
    assert " conditional(" in text
    entry = text[text.index("ENTRY") :]
    assert " sort(" in text
    assert " sort(" not in entry


@pytest.mark.parametrize("computed", [0.0, 1.0, np.nan, np.inf, -np.inf, [1.0, np.nan]])
@pytest.mark.parametrize("value", [np.int32(3), np.arange(4, dtype=np.uint32), np.array([True])])
def test_order_after_changes_no_value(value, computed):
    found = jax.jit(order_after)(value, jnp.asarray(computed))
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)


def overwrite(order):
    """Read some of an array, compute from it, and overwrite a part of it."""

    def step(array, indices):
        read = array[indices]
        error = jnp.tanh(read).sum()
        start = indices[0] * 0 + 3
        start = order_after(start, error) if order else start
        written = jax.lax.dynamic_update_slice(array, jnp.ones(4), (start,))
        return written, read, error

    return step


def test_a_write_ordered_after_what_was_read_is_in_place():
    array, indices = jnp.arange(4096, dtype=jnp.float32), jnp.arange(8)
    assert_inplace(overwrite(True), array, indices)
    with pytest.raises(AssertionError, match="copy of f32"):
        assert_inplace(overwrite(False), array, indices)
    for one, other in zip(
        *(overwrite(order)(array, indices) for order in (True, False)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
