"""What every `types.Environment` must do; see docs/environments.md. Call `check_environment`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.types import Discrete, Environment

ENVS = 3


def check_environment(env, steps=60, seed=0):
    """Assert the contract for an environment, over random actions.

    Args:
      env: the environment.
      steps: how many are taken of each of a few, all by themselves and under `vmap`.
      seed: of the actions.

    Returns:
      Of the mapped environments [steps, ENVS, ...]: actions and what `step` gave, without states.
    """
    assert isinstance(env, Environment)
    assert isinstance(env.name, str)
    actions = random_actions(env.action_space, (steps, ENVS), seed)
    keys = jax.random.split(jax.random.key(seed), (steps + 1, ENVS))
    traces = []

    @jax.jit
    def step(*arguments):
        traces.append(None)
        return env.step(*arguments)

    reset = jax.jit(env.reset)
    first = reset(keys[0, 0])
    _check_observation(env, first[0])
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(first[1])), "a state is weakly typed"
    alone, state = [], first[1]
    for time in range(min(steps, 8)):
        given = step(keys[time + 1, 0], state, actions[time, 0])
        _check_step(env, first, given)
        state = given[1]
        alone.append(_without_state(given))
    assert len(traces) == 1, "a state from `step` must compile to what one from `reset` does"
    again = step(keys[1, 0], first[1], actions[0, 0])
    jax.tree.map(np.testing.assert_array_equal, _without_state(again), alone[0])

    @jax.jit
    def play(keys, actions):
        def one(state, inputs):
            given = jax.vmap(env.step)(inputs[0], state, inputs[1])
            return given[1], _without_state(given)

        observation, state = jax.vmap(env.reset)(keys[0])
        return observation, jax.lax.scan(one, state, (keys[1:], actions))[1]

    start, played = jax.tree.map(np.asarray, play(keys, actions))
    # A batch may round differently, and a scan fuses more.
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)  # noqa: E731
    near(start[0], first[0])
    for time, each in enumerate(alone):
        jax.tree.map(lambda a, b, time=time: near(a[time, 0], b), played, each)
    _check_played(env, played)
    _check_refusals(env, keys[0, 0], first[1])
    return actions, played


def random_actions(space, leading, seed=0):
    """Uniform actions [*leading, *action]; a Box's infinite bounds count as 1."""
    random = np.random.default_rng(seed)
    if isinstance(space, Discrete):
        return jnp.asarray(random.integers(space.n, size=leading), jnp.int32)
    low, high = (
        np.clip(bound, -1e3, 1e3).reshape(space.shape) for bound in (space.low, space.high)
    )
    return jnp.asarray(random.uniform(low, high, (*leading, *space.shape)), space.dtype)


def _without_state(given):
    observation, _, reward, terminated, truncated, info = given
    return observation, reward, terminated, truncated, info


def _check_observation(env, observation):
    space = env.observation_space
    assert isinstance(observation, jax.Array)
    assert (observation.shape, observation.dtype) == (space.shape, _held(space.dtype))
    assert not observation.weak_type, "an observation is weakly typed"


def _check_step(env, first, given):
    observation, state, reward, terminated, truncated, info = given
    _check_observation(env, observation)
    _check_observation(env, info["final_observation"])
    before, after = (jax.tree.map(_kind, each) for each in (first[1], state))
    assert before == after, "`reset` and `step` must give states of the same kind"
    assert _kind(reward) == ((), np.float32, False)
    assert _kind(terminated) == _kind(truncated) == ((), np.bool_, False)
    assert all(not leaf.weak_type for leaf in jax.tree.leaves(info))


def _check_played(env, played):
    observation, reward, terminated, truncated, info = played
    final, stopped = info["final_observation"], terminated | truncated
    assert np.isfinite(reward).all()
    np.testing.assert_array_equal(
        observation[~stopped], final[~stopped], "only where an episode stopped are there two"
    )
    space = env.observation_space
    for each in (observation, final):
        if isinstance(space, Discrete):
            assert (each >= 0).all()
            assert (each < space.n).all()
        else:
            low, high = (np.reshape(bound, space.shape) for bound in (space.low, space.high))
            slack = 1e-4 * np.abs(np.where(np.isfinite(high - low), high - low, 1))
            assert (each >= low - slack).all()
            assert (each <= high + slack).all()


def _check_refusals(env, key, state):
    space = env.action_space
    with pytest.raises(ValueError, match="must have the shape"):
        env.step(key, state, jnp.zeros((2, *space.shape), space.dtype))
    if isinstance(space, Discrete):
        with pytest.raises(TypeError, match="must be an integer"):
            env.step(key, state, jnp.float32(0))


def _kind(leaf):
    return leaf.shape, leaf.dtype, leaf.weak_type


def _held(dtype):
    return jax.dtypes.canonicalize_dtype(dtype)
