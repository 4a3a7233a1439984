"""Rings of any size and any chunks against the reference, which never overwrites anything."""

import dataclasses

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from reference import Memory

from accel_rl.replay import Ring
from accel_rl.replay import ring as rings

MOST = 512  # items of a program


@st.composite
def programs(draw):
    window, history = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    rows = draw(st.integers(window + history, 12))
    num_envs = draw(st.integers(1, 3))
    ring = Ring(rows * num_envs, num_envs, window, history)
    most = rows - ring.reach + 1
    return ring, draw(st.lists(st.integers(1, most), min_size=1, max_size=12))


@hypothesis.settings(max_examples=60)
@hypothesis.given(programs())
def test_against_the_reference(program):
    ring, chunks = program
    cursor = rings.start()
    memory = Memory(ring.capacity, ring.num_envs, ring.window, ring.history)
    taken = {}  # items that could be drawn once, as (slot, generation)
    for steps in chunks:
        cursor = rings.advance(ring, cursor, steps)
        memory.add([[None] * ring.num_envs] * steps)
        first, size = (int(x) for x in rings.span(ring, cursor))
        complete = memory.complete()
        assert [memory.slot(item) for item in complete] == [
            (first + k) % ring.capacity for k in range(size)
        ]
        found = np.asarray(rings.generations(ring, cursor, np.arange(MOST, dtype=np.int32)))
        for item in complete:
            assert found[memory.slot(item)] == memory.generation(item)
            taken[memory.slot(item), memory.generation(item)] = item
        old = np.zeros((2, MOST), np.uint32)  # of one shape, for operations are compiled for each
        old[:, : len(taken)] = np.array(list(taken), np.uint32).reshape(-1, 2).T
        current = rings.current(ring, cursor, old[0].astype(np.int32), old[1])
        assert current.tolist()[: len(taken)] == [item in complete for item in taken.values()]


def test_generations_wrap_around():
    """After 2**32 laps the count starts anew, and items of the lap before are still told apart."""
    ring = Ring(6, 2)
    cursor = dataclasses.replace(rings.start(), laps=jnp.uint32(2**32 - 2))
    slots = np.arange(6, dtype=np.int32)
    seen = set()
    for _ in range(4):
        generation = rings.generations(ring, cursor, slots)
        assert np.all(rings.current(ring, cursor, slots, generation))
        seen |= {tuple(generation.tolist())}
        cursor = rings.advance(ring, cursor, 1)
        kept = rings.current(ring, cursor, slots, generation)
        assert np.sum(kept) == 4  # all but a row
    assert len(seen) == 4


def test_advancing_a_whole_ring_comes_back():
    ring = Ring(4)
    cursor = rings.advance(ring, rings.start(), 4)
    assert (cursor.row, cursor.laps) == (0, 1)
    assert tuple(map(int, rings.span(ring, cursor))) == (0, 4)


def test_functions_are_mapped_and_compiled():
    ring = Ring(6, 2, 2)
    cursors = jax.vmap(lambda row: rings.Cursor(row, jnp.uint32(0)))(jnp.arange(3))
    first, size = jax.jit(jax.vmap(lambda cursor: rings.span(ring, cursor)))(cursors)
    assert (first.tolist(), size.tolist()) == ([0, 0, 0], [0, 0, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "capacity must be from 1 to .*, got 0"),
        ((2**30 + 1,), ValueError, "capacity must be from 1 to 1073741824, got 1073741825"),
        ((2.0,), TypeError, "capacity must be an int, got 2.0"),
        ((True,), TypeError, "capacity must be an int, got True"),
        ((7, 2), ValueError, r"multiple of num_envs \(2\), got 7: try 6"),
        ((1, 2), ValueError, r"multiple of num_envs \(2\), got 1: try 2"),
        ((4, 0), ValueError, "num_envs must be at least 1, got 0"),
        ((4, 2, 2, 1), ValueError, "an item's 3 steps of each environment, at least 6, got 4"),
        ((4, 1, 0), ValueError, "window must be at least 1"),
        ((4, 1, 1, -1), ValueError, "history must be at least 0"),
    ],
)
def test_sizes_that_do_not_fit(arguments, error, message):
    with pytest.raises(error, match=message):
        Ring(*arguments)
