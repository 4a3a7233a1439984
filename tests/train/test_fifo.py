"""Queues inside a program, against Python's."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.train.state import fill_fifo, oldest_of, push_into


@pytest.mark.parametrize("length", [1, 2, 5])
def test_comes_out_as_of_a_queue(length):
    first = {"x": np.float32([9, 9]), "n": np.int32(9)}
    reference = collections.deque([first] * length)
    held = fill_fifo(first, length)
    for number in range(12):
        item = {"x": np.float32([number, -number]), "n": np.int32(number)}
        reference.append(item)
        jax.tree.map(np.testing.assert_array_equal, oldest_of(held, item), reference.popleft())
        held = push_into(held, item)
        for slot, kept in enumerate(reference):
            found = jax.tree.map(lambda leaf, slot=slot: leaf[slot], held)
            jax.tree.map(np.testing.assert_array_equal, found, kept)


def test_no_length_is_no_queue():
    held = fill_fifo({"x": jnp.zeros(3)}, 0)
    assert held is None
    assert push_into(held, 5) is None
    assert oldest_of(held, 5) == 5
