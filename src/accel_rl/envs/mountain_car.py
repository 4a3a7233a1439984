"""MountainCarContinuous of gymnax, with Gymnasium's wall at the left end."""

from typing import Any

import jax.numpy as jnp
from gymnax.environments.classic_control import continuous_mountain_car as gymnax_car

from accel_rl.types import Array, PyTree


class MountainCarContinuous(gymnax_car.ContinuousMountainCar):
    """MountainCarContinuous-v0 as in Gymnasium, where the left end stops the car.

    gymnax 1.0 checks for the right end instead, so the car keeps its speed at the left wall until
    gravity reverses it.
    """

    def step_env(
        self, key: Array, state: PyTree, action: PyTree, params: PyTree
    ) -> tuple[Array, Any, Array, Array, dict[Any, Any]]:
        """Take one action, without resetting; see gymnax."""
        _, state, reward, terminated, info = super().step_env(key, state, action, params)
        stopped = (state.position <= params.min_position) & (state.velocity < 0)
        velocity = jnp.where(stopped, jnp.zeros_like(state.velocity), state.velocity)
        state = state.replace(velocity=velocity)
        observation, state = self._apply_transition_gradient_policy(self.get_obs(state), state)
        return observation, state, reward, terminated, info
