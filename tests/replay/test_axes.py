"""Adding transitions whose axes are [envs, steps]."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay

MADE = replay.make({"x": np.zeros(3, np.float32)}, 24, 4, "prioritised", num_envs=4)


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_batch_major_is_the_transpose_of_time_major(steps):
    rng = np.random.default_rng(steps)
    rows = {"x": rng.normal(size=(steps, 4, 3)).astype(np.float32)}
    priorities = rng.uniform(0.1, 2, (steps, 4)).astype(np.float32)
    turned = {"x": rows["x"].swapaxes(0, 1)}
    add = functools.partial(MADE.add, MADE.init())
    want = add(rows, priorities, batch_major=False)
    compiled = jax.jit(functools.partial(MADE.add, batch_major=True))
    for found in (
        add(turned, priorities.T, batch_major=True),
        compiled(MADE.init(), turned, jnp.asarray(priorities.T)),
    ):
        jax.tree.map(np.testing.assert_array_equal, found, want)


def test_one_step_of_all_environments_has_no_axis_to_swap():
    row = {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}
    want = MADE.add(MADE.init(), row)
    found = MADE.add(MADE.init(), row, batch_major=True)
    jax.tree.map(np.testing.assert_array_equal, found, want)


def test_a_single_environment_is_not_ambiguous():
    made = replay.make({"x": np.float32(0)}, 8, 2, num_envs=1)
    state = made.add(made.init(), {"x": np.ones((1, 1), np.float32)})
    assert made.size(state) == 1
