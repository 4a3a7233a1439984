"""Boxes that contradict themselves are refused where they are made."""

import dataclasses

import jax
import numpy as np
import pytest

from accel_rl import agents
from accel_rl.types import Box


def test_a_dtype_may_be_its_type():
    box = Box((-1.0,), (1.0,), (1,), np.float32)
    assert box == Box((-1.0,), (1.0,), (1,))
    assert agents.ddpg(box, box).action_space == box


def test_bounds_may_be_a_number_a_list_or_an_array():
    box = Box((-1.0,) * 6, (2.0,) * 6, (2, 3))
    for low, high in (
        (-1.0, 2.0),
        (-1, np.float32(2)),
        ([-1.0] * 6, np.full(6, 2)),
        (np.full((2, 3), -1.0, np.float32), jax.numpy.full((2, 3), 2.0)),
    ):
        made = Box(low, high, [2, 3])
        assert made == box
        assert hash(made) == hash(box)
        assert made.low == (-1.0,) * 6
    assert dataclasses.replace(box, shape=(6,)) == Box(-1.0, 2.0, (6,))
    assert Box(0.0, 1.0, ()) == Box((0.0,), (1.0,), ())


def test_bounds_of_another_shape():
    with pytest.raises(
        ValueError, match=r"high must be flat or of the shape, \(2, 3\), got \(3, 2\)"
    ):
        Box(0.0, np.ones((3, 2)), (2, 3))


@pytest.mark.parametrize(
    ("low", "high", "match"),
    [
        ((1.0,), (-1.0,), "low must be at most high"),
        ((float("nan"),), (1.0,), "low must be at most high"),
        ((-1.0, -1.0), (1.0, 1.0), "must have the 1 elements of the shape"),
        ((-1.0,), (1.0, 1.0), "must have the 1 elements of the shape"),
    ],
)
def test_bounds_that_do_not_fit(low, high, match):
    with pytest.raises(ValueError, match=match):
        Box(low, high, (1,))


def test_a_hyper_parameter_that_is_no_number():
    box = Box((-1.0,), (1.0,), (1,))
    with pytest.raises(TypeError, match="tau must be a number, got 'fast'"):
        agents.ddpg(box, box).init(jax.random.key(0), tau="fast")
