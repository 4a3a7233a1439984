"""Craftax by name, against Craftax's own steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optional import require

from accel_rl import envs
from accel_rl.testing import check_environment

KEY = jax.random.key(0)
NAME = "Craftax-Classic-Symbolic-v1"


@pytest.fixture(scope="module")
def short():
    require("Craftax")
    return envs.environment(f"craftax:{NAME}", max_timesteps=20)


@pytest.mark.long  # compiles a game
def test_craftax_is_craftax_s_own(short):
    from craftax.craftax_env import make_craftax_env_from_name

    assert (short.observation_space.shape, short.action_space.n) == ((1345,), 17)
    check_environment(short)
    with jax.numpy_dtype_promotion("standard"):
        own = make_craftax_env_from_name(NAME, auto_reset=False)
        params = own.default_params.replace(max_timesteps=20)
        seen, theirs = own.reset(KEY, params)
    observation, state = jax.jit(short.reset)(KEY)
    step, rng, rewards = jax.jit(short.step), np.random.default_rng(0), 0
    for time in range(20):
        np.testing.assert_array_equal(observation, seen)
        key, action = jax.random.fold_in(KEY, time), jnp.int32(rng.integers(17))
        moving, starting = jax.random.split(key)
        with jax.numpy_dtype_promotion("standard"):
            seen, theirs, reward, done, info = own.step(moving, theirs, action, params)
        observation, state, got, terminated, truncated, ours = step(key, state, action)
        np.testing.assert_array_equal(ours["final_observation"], seen)
        assert got == reward
        assert (terminated, truncated) == (False, time == 19)
        assert set(info) - set(ours) == {"discount"}
        rewards += abs(float(reward))
    assert done
    assert info["discount"] == 0  # although the limit only truncates
    assert rewards > 0
    np.testing.assert_array_equal(observation, short.reset(starting)[0])


@pytest.mark.long  # compiles a game
def test_death_terminates_even_at_the_time_limit(short):
    _, state = jax.jit(short.reset)(KEY)
    step, ends = jax.jit(short.step), []
    for health, time in ((0, 3), (9, 19), (0, 19)):
        changed = state.replace(player_health=jnp.int32(health), timestep=jnp.int32(time))
        *_, terminated, truncated, _ = step(KEY, changed, 0)
        ends.append((bool(terminated), bool(truncated)))
    assert ends == [(True, False), (False, True), (True, False)]


@pytest.mark.long  # imports the game
def test_craftax_refuses(short):
    with pytest.raises(ValueError, match=r"craftax has no environment 'Craft'; there are Craftax-"):
        envs.environment("craftax:Craft")
    with pytest.raises(TypeError, match="max_steps"):
        envs.environment(f"craftax:{NAME}", max_steps=20)
