"""The memory of the newest steps: all of them, in order, with targets of one step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.types import Batch, Transition

ENVS, GAMMA = 3, 0.9


def steps_of(number, envs=ENVS):
    """Transitions that can be told apart, of environments that end, are cut, or go on."""
    each = np.arange(envs) + 10 * number
    return Transition(
        observation=np.stack([each, -each], -1).astype(np.float32),
        action=each.astype(np.int32),
        reward=(each / 8).astype(np.float32),
        discount=np.float32(np.arange(envs) % 3 != 0),
        truncated=np.arange(envs) % 3 == 1,
        next_observation=np.stack([each + 1, -each], -1).astype(np.float32),
        extras={"next_action": (each + 2).astype(np.int32)},
    )


EXAMPLE = jax.tree.map(lambda leaf: leaf[0], steps_of(0))


@pytest.fixture(scope="module")
def memory():
    return replay.newest(EXAMPLE, ENVS)


def test_samples_the_newest_step_of_each_environment_in_order(memory):
    add, sample = jax.jit(memory.add), jax.jit(memory.sample)
    state = memory.init()
    for number in range(4):
        steps = steps_of(number)
        state = add(state, steps)
        assert int(memory.size(state)) == ENVS
        assert memory.can_sample(state)
        drawn = sample(state, jax.random.key(number), 0.7, GAMMA)
        expected = Batch(
            steps.observation,
            steps.action,
            steps.reward,
            np.float32(GAMMA) * steps.discount,
            steps.next_observation,
            steps.extras,
        )
        jax.tree.map(np.testing.assert_array_equal, drawn.batch, expected)
        np.testing.assert_array_equal(drawn.weights, np.ones(ENVS))
        np.testing.assert_array_equal(drawn.indices, np.arange(ENVS))
        np.testing.assert_allclose(drawn.probabilities, 1 / ENVS)
        np.testing.assert_array_equal(drawn.generations, number)


def test_nothing_can_be_sampled_before_the_first_step(memory):
    state = memory.init()
    assert not memory.can_sample(state)
    with pytest.raises(ValueError, match="can_sample"):
        memory.sample(state, jax.random.key(0), 1.0, GAMMA)
    drawn = jax.jit(memory.sample)(state, jax.random.key(0), 1.0, GAMMA)
    np.testing.assert_array_equal(drawn.weights, np.zeros(ENVS))


def test_priorities_do_not_matter(memory):
    state = jax.jit(memory.add)(memory.init(), steps_of(0), np.arange(ENVS))
    drawn = jax.jit(memory.sample)(state, jax.random.key(0), 1.0, GAMMA)
    same = memory.update(state, drawn, jnp.arange(ENVS, dtype=jnp.float32))
    jax.tree.map(np.testing.assert_array_equal, same, state)
    np.testing.assert_array_equal(drawn.weights, np.ones(ENVS))


def test_over_seeds(memory):
    steps = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(steps_of(n) for n in range(4)))

    def held(steps, key):
        return memory.sample(memory.add(memory.init(), steps), key, 1.0, GAMMA)

    drawn = jax.jit(jax.vmap(held))(steps, jax.random.split(jax.random.key(0), 4))
    np.testing.assert_array_equal(drawn.batch.action, steps.action)


@pytest.mark.parametrize(
    ("example", "num_envs", "error", "match"),
    [
        (EXAMPLE, 0, ValueError, "num_envs must be at least 1, got 0"),
        (EXAMPLE, 2.0, TypeError, "num_envs must be an int, got 2.0"),
        (EXAMPLE, True, TypeError, "num_envs must be an int, got True"),
    ],
)
def test_bad_input(example, num_envs, error, match):
    with pytest.raises(error, match=match):
        replay.newest(example, num_envs)


def test_needs_final_observations():
    example = Transition(*(getattr(EXAMPLE, n) for n in ("observation", "action", "reward")), 1.0)
    with pytest.raises(TypeError, match="example must have a next_observation, got None"):
        replay.newest(example, 1)


def test_steps_are_added_one_at_a_time(memory):
    two = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), steps_of(0))
    with pytest.raises(ValueError, match="steps added at once must be from 1 to 1"):
        memory.add(memory.init(), two)
