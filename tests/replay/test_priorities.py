import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import replay


def test_td_priority_is_the_absolute_error_and_epsilon():
    error = np.float32([-2, 0, 0.5])
    found = replay.td_priority(jnp.asarray(error), 0.25)
    np.testing.assert_array_equal(found, np.float32([2.25, 0.25, 0.75]))


def test_sequence_priority_mixes_maximum_and_mean_of_valid_steps():
    rng = np.random.default_rng(0)
    error = rng.normal(size=(5, 7)).astype(np.float32)
    valid = np.arange(7) < rng.integers(1, 8, (5, 1))
    found = jax.jit(replay.sequence_priority)(error, valid, 0.7, 0.0)
    for row, mask, value in zip(np.abs(error), valid, np.asarray(found), strict=True):
        steps = row[mask]
        np.testing.assert_allclose(value, 0.7 * steps.max() + 0.3 * steps.mean(), rtol=1e-6)


def test_a_sequence_without_valid_steps_has_priority_epsilon():
    found = replay.sequence_priority(jnp.ones((1, 3)), jnp.zeros((1, 3), bool), epsilon=0.5)
    np.testing.assert_array_equal(found, np.float32([0.5]))
