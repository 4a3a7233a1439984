"""Contract check of a `types.Environment`; see docs/environments.md."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.testing.expect import expect, expect_equal, expect_refusal
from accel_rl.types import Array, ArrayLike, Discrete, Environment, PyTree, Space

ENVS = 3


def check_environment(env: Environment, steps: int = 60, seed: int = 0) -> tuple[Array, PyTree]:
    """Check an environment's contract with random actions, alone and under `vmap`.

    Args:
      env: the environment.
      steps: steps of each of a few mapped environments; the first eight also run without `vmap`.
      seed: seed of actions and keys.

    Returns:
      Actions, and results of `step` without states, of the mapped environments [steps, ENVS, ...].
    """
    expect(isinstance(env, Environment), f"env must be a types.Environment, got {env!r}")
    expect(isinstance(env.name, str), f"name must be a string, got {env.name!r}")
    actions = random_actions(env.action_space, (steps, ENVS), seed)
    keys = jax.random.split(jax.random.key(seed), (steps + 1, ENVS))
    traces: list[None] = []

    @jax.jit
    def step(*arguments: PyTree) -> PyTree:
        traces.append(None)
        return env.step(*arguments)

    reset = jax.jit(env.reset)
    first = reset(keys[0, 0])
    _check_observation(env, first[0])
    expect(not any(map(_weak, jax.tree.leaves(first[1]))), "a state is weakly typed")
    alone, state = [], first[1]
    for time in range(min(steps, 8)):
        given = step(keys[time + 1, 0], state, actions[time, 0])
        _check_step(env, first, given)
        state = given[1]
        alone.append(_without_state(given))
    expect(len(traces) == 1, "a state from `step` must compile to what one from `reset` does")
    again = step(keys[1, 0], first[1], actions[0, 0])
    jax.tree.map(np.testing.assert_array_equal, _without_state(again), alone[0])

    @jax.jit
    def play(keys: Array, actions: Array) -> PyTree:
        def one(state: PyTree, inputs: PyTree) -> PyTree:
            given = jax.vmap(env.step)(inputs[0], state, inputs[1])
            return given[1], _without_state(given)

        observation, state = jax.vmap(env.reset)(keys[0])
        return observation, jax.lax.scan(one, state, (keys[1:], actions))[1]

    start, played = jax.tree.map(np.asarray, play(keys, actions))
    _near(start[0], first[0])
    for time, each in enumerate(alone):
        jax.tree.map(_near, jax.tree.map(lambda leaf, t=time: leaf[t, 0], played), each)
    _check_played(env, played)
    _check_refusals(env, keys[0, 0], first[1])
    return actions, played


def random_actions(space: Space, leading: tuple[int, ...], seed: int = 0) -> Array:
    """Sample uniform actions [*leading, *action]; a Box's bounds are clipped to +-1,000."""
    random = np.random.default_rng(seed)
    if isinstance(space, Discrete):
        return jnp.asarray(random.integers(space.n, size=leading), jnp.int32)
    low, high = (
        np.clip(bound, -1e3, 1e3).reshape(space.shape) for bound in (space.low, space.high)
    )
    return jnp.asarray(random.uniform(low, high, (*leading, *space.shape)), space.dtype)


def _near(mapped: PyTree, alone: PyTree) -> None:
    """Compare with a tolerance: a batch may round differently, and a scan fuses more."""
    np.testing.assert_allclose(mapped, alone, rtol=1e-3, atol=1e-4)


def _without_state(given: PyTree) -> PyTree:
    observation, _, reward, terminated, truncated, info = given
    return observation, reward, terminated, truncated, info


def _check_observation(env: Environment, observation: PyTree) -> None:
    space = env.observation_space
    expect(isinstance(observation, jax.Array), "an observation must be an array of JAX")
    held = space.shape, jax.dtypes.canonicalize_dtype(space.dtype), False
    expect_equal(_kind(observation), held, "an observation's shape, dtype and weak type")


def _check_step(env: Environment, first: PyTree, given: PyTree) -> None:
    observation, state, reward, terminated, truncated, info = given
    _check_observation(env, observation)
    _check_observation(env, info["final_observation"])
    before, after = (jax.tree.map(_kind, each) for each in (first[1], state))
    expect_equal(after, before, "a state from `step` must be of the kind of `reset`'s, which")
    expect_equal(_kind(reward), ((), np.float32, False), "a reward's shape, dtype and weak type")
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        expect_equal(_kind(flag), ((), np.bool_, False), f"{name}'s shape, dtype and weak type")
    expect(not any(map(_weak, jax.tree.leaves(info))), "info is weakly typed")


def _check_played(env: Environment, played: PyTree) -> None:
    observation, reward, terminated, truncated, info = played
    final, stopped = info["final_observation"], terminated | truncated
    expect(np.isfinite(reward), "rewards must be finite")
    np.testing.assert_array_equal(
        observation[~stopped], final[~stopped], "only where an episode stopped are there two"
    )
    space = env.observation_space
    for each in (observation, final):
        if isinstance(space, Discrete):
            expect((each >= 0) & (each < space.n), "an observation is not of its space")
        else:
            low, high = (np.reshape(bound, space.shape) for bound in (space.low, space.high))
            slack = 1e-4 * np.abs(np.where(np.isfinite(high - low), high - low, 1))
            inside = (each >= low - slack) & (each <= high + slack)
            expect(inside, "an observation is not of its space")


def _check_refusals(env: Environment, key: Array, state: PyTree) -> None:
    space = env.action_space
    wrong = jnp.zeros((2, *space.shape), space.dtype)
    by = "envs.action_of"
    expect_refusal(ValueError, "must have the shape", env.step, key, state, wrong, by=by)
    if isinstance(space, Discrete):
        real = jnp.float32(0)
        expect_refusal(TypeError, "must be an integer", env.step, key, state, real, by=by)


def _kind(leaf: ArrayLike) -> tuple[object, ...]:
    return leaf.shape, leaf.dtype, _weak(leaf)


def _weak(leaf: Array) -> bool:
    """Return whether an array is weakly typed; PRNG keys do not say."""
    return bool(getattr(leaf, "weak_type", False))
