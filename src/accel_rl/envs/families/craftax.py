"""Craftax's environments, https://github.com/MichaelTMatthews/Craftax, without its auto-reset."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax_env import make_craftax_env_from_name

from accel_rl.control_flow import cond_under_vmap
from accel_rl.envs.adapter import action_of, space_of, strong
from accel_rl.types import Array, ArrayLike, Environment, EnvStep, PyTree

NAMES = tuple(
    f"Craftax-{game}{seen}-v1" for game in ("", "Classic-") for seen in ("Symbolic", "Pixels")
)


def make(name: str, **kwargs: Any) -> Environment:
    """Make an environment of Craftax.

    Craftax's `done` includes its time limit, which here truncates. `info` has its achievements, in
    percent at the end of an episode and 0 before.

    Args:
      name: such as "Craftax-Symbolic-v1".
      **kwargs: fields of Craftax's `EnvParams`, such as max_timesteps=10_000.
    """
    if name not in NAMES:
        raise ValueError(f"craftax has no environment {name!r}; there are {', '.join(NAMES)}")
    with jax.numpy_dtype_promotion("standard"):
        env: Any = make_craftax_env_from_name(name, auto_reset=False)
        params = env.default_params.replace(**kwargs)
        unlimited = params.replace(max_timesteps=np.iinfo(np.int32).max)
        actions = space_of(env.action_space(params))
        observations = space_of(env.observation_space(params))

    def reset(key: Array) -> tuple[Array, PyTree]:
        with jax.numpy_dtype_promotion("standard"):
            observation, state = env.reset(key, params)
        return observation.astype(jnp.float32), jax.tree.map(strong, state)

    def step(key: Array, state: PyTree, action: ArrayLike) -> EnvStep:
        action = action_of(actions, action, name)
        moving, starting = jax.random.split(key)
        with jax.numpy_dtype_promotion("standard"):
            final, after, reward, stopped, info = env.step(moving, state, action, params)
            terminated = env.is_terminal(after, unlimited)
        kept = final.astype(jnp.float32), jax.tree.map(strong, after)
        new = cond_under_vmap(stopped, lambda _, key: reset(key), kept, starting)
        truncated = stopped & ~terminated
        # Its discount is 0 at the time limit, too.
        shown = {each: strong(info[each]) for each in info if each != "discount"}
        info = {**shown, "final_observation": kept[0]}
        return *new, reward.astype(jnp.float32), terminated, truncated, info

    return Environment(name, observations, actions, reset, step)
