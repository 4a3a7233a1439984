"""Actions of a Box, and the cube from -1 to 1 in which agents choose them."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.continuous import from_cube, to_cube
from accel_rl.types import Box

BOX = Box((-1.0, 0.0, 2.0, -0.1, 5.0, -1e30), (1.0, 7.0, 3.0, 0.3, 5.0, 1e30), (2, 3))


def test_there_and_back_in_numpys_terms():
    cube = np.random.default_rng(0).uniform(-1, 1, (100, 6)).astype(np.float32)
    action = jax.jit(lambda x: from_cube(BOX, x))(cube)
    assert (action.shape, action.dtype) == ((100, 2, 3), np.float32)
    low, high = np.asarray(BOX.low), np.asarray(BOX.high)
    want = (low + (high - low) * (cube.astype(np.float64) + 1) / 2).reshape(100, 2, 3)
    np.testing.assert_allclose(action, want, rtol=1e-6, atol=1e-6)
    back = jax.jit(lambda x: to_cube(BOX, x))(action)
    np.testing.assert_allclose(np.delete(back, 4, axis=1), np.delete(cube, 4, axis=1), atol=1e-5)
    np.testing.assert_array_equal(back[:, 4], 0)  # the component of which there is one value


def test_bounds_are_kept_to_the_last_bit():
    for side, bound in ((-1, BOX.low), (1, BOX.high)):
        action = from_cube(BOX, jnp.full((1, 6), side, jnp.float32))
        np.testing.assert_array_equal(action[0].ravel(), np.asarray(bound, np.float32))


def test_actions_have_the_dtype_of_their_space():
    half = Box((0.0,), (1.0,), (), np.dtype(np.float16))
    action = from_cube(half, jnp.zeros((4, 1)))
    assert (action.shape, action.dtype) == ((4,), np.float16)
    assert to_cube(half, action).dtype == np.float32
