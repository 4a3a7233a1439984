"""Boxes that contradict themselves are refused where they are made."""

import jax
import numpy as np
import pytest

from accel_rl import agents
from accel_rl.types import Box


def test_a_dtype_may_be_its_type():
    box = Box((-1.0,), (1.0,), (1,), np.float32)
    assert box == Box((-1.0,), (1.0,), (1,))
    assert agents.ddpg(box, box).action_space == box


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
