"""Parts of agents of continuous actions: maps to [-1, 1], exploration noise, several critics."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.hyperparameters import Limits
from accel_rl.networks import Critic
from accel_rl.networks.initialisation import initialise
from accel_rl.types import Array, ArrayLike, Box, PyTree

RANDOM_STEPS = {
    "random_steps": Limits(1_000, 0, 1e12, "environment steps in which actions are uniform"),
}


def components(space: Box) -> int:
    """Return D, the number of components of an action."""
    return math.prod(space.shape)


def from_cube(space: Box, action: Array) -> Array:
    """Map actions in [-1, 1] to the bounds of a space.

    Args:
      space: with finite bounds; -1 maps to `low`, 1 to `high`.
      action: [B, D] float32 in [-1, 1].

    Returns:
      [B, *space.shape] of the space's dtype, never outside the bounds.
    """
    middle, half = _middle_and_half(space)
    # Rounding of middle + half can exceed a bound, so the result is clipped in the space's units.
    low, high = (np.asarray(bound, np.float32) for bound in (space.low, space.high))
    action = jnp.clip(middle + half * action, low, high)
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    return action.reshape(-1, *space.shape).astype(dtype)


def to_cube(space: Box, action: Array) -> Array:
    """Map actions of a space to [-1, 1], the inverse of `from_cube`.

    Args:
      space: with finite bounds. A component whose bounds are equal maps to 0.
      action: [B, *space.shape].

    Returns:
      [B, D] float32.
    """
    middle, half = _middle_and_half(space)
    flat = action.reshape(-1, components(space)).astype(jnp.float32)
    return (flat - middle) / np.where(half > 0, half, np.float32(1))


def _middle_and_half(space: Box) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle and half the width of each component's range, [D] float32 each."""
    # Halved before they are added: the sum of two large bounds could overflow.
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    return (low / 2 + high / 2).astype(np.float32), (high / 2 - low / 2).astype(np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ContinuousPolicy:
    """Part of an agent's state that acting reads; a pytree."""

    actor: PyTree
    hyper: dict[str, Array]  # [] float32 each, of the noise and the initial random steps


class Noise(NamedTuple):
    """Additive noise for actions in [-1, 1], as pure functions."""

    memory: Callable[[int, int], PyTree]
    """memory(num_envs, num): the noise's state at the start of an episode, leaves [E, ...]; `num`
    is D."""

    draw: Callable[[Mapping[str, Array], PyTree, Array, tuple[int, ...]], tuple[Array, PyTree]]
    """draw(hyper, memory, key, shape (E, D)): noise [E, D] float32, and the new memory."""

    hyperparameters: Mapping[str, Limits]


def gaussian() -> Noise:
    """Make Gaussian noise, independent at each step."""

    def draw(
        hyper: Mapping[str, Array], memory: PyTree, key: Array, shape: tuple[int, ...]
    ) -> tuple[Array, PyTree]:
        return hyper["noise_scale"] * jax.random.normal(key, shape, jnp.float32), memory

    scale = Limits(0.1, 0, 10, "standard deviation of the noise, in halves of an action's range")
    return Noise(lambda num_envs, num: (), draw, {"noise_scale": scale})


def ornstein_uhlenbeck() -> Noise:
    """Make Ornstein-Uhlenbeck noise, dx = -theta x dt + sigma dW, from 0 in each episode.

    Steps of `ou_dt` use the exact transition, not Euler's: a step keeps exp(-theta dt) of the last
    noise, and the variance tends to sigma^2 / (2 theta) for any dt.

    Reference: Uhlenbeck and Ornstein, "On the theory of the Brownian motion", Physical Review 1930;
      as exploration, Lillicrap et al., "Continuous control with deep reinforcement learning",
      ICLR 2016, section 3.
    """

    def draw(
        hyper: Mapping[str, Array], memory: PyTree, key: Array, shape: tuple[int, ...]
    ) -> tuple[Array, PyTree]:
        theta, sigma, dt = hyper["ou_theta"], hyper["ou_sigma"], hyper["ou_dt"]
        spread = sigma * jnp.sqrt(-jnp.expm1(-2 * theta * dt) / (2 * theta))
        noise = jnp.exp(-theta * dt) * memory + spread * jax.random.normal(key, shape, jnp.float32)
        return noise, noise

    return Noise(
        lambda num_envs, num: jnp.zeros((num_envs, num), jnp.float32),
        draw,
        {
            "ou_theta": Limits(0.15, 1e-6, 1e3, "rate at which the noise returns to 0"),
            "ou_sigma": Limits(0.2, 0, 1e3, "speed at which it spreads, in halves of the range"),
            "ou_dt": Limits(1, 1e-6, 1e3, "time that an environment step takes"),
        },
    )


def none() -> Noise:
    """Make no noise."""
    return Noise(
        lambda num_envs, num: (),
        lambda hyper, memory, key, shape: (jnp.zeros(shape, jnp.float32), memory),
        {},
    )


NOISES: dict[str, Callable[[], Noise]] = {
    "gaussian": gaussian,
    "ornstein_uhlenbeck": ornstein_uhlenbeck,
    "none": none,
}


def uniform_at_first(action: Array, key: Array, step: ArrayLike, random_steps: Array) -> Array:
    """Replace actions by uniform ones in [-1, 1] for the first `random_steps` steps.

    Args:
      action: [E, D] float32, returned from step `random_steps` on.
      key: PRNG key.
      step: steps of all environments so far, int32.
      random_steps: [] float32.

    Returns:
      [E, D] float32.
    """
    uniform = jax.random.uniform(key, action.shape, jnp.float32, -1, 1)
    return jnp.where(jnp.asarray(step).astype(jnp.float32) < random_steps, uniform, action)


class Critics(NamedTuple):
    """Ensemble of C independently initialised critics."""

    network: Critic
    num: int
    initialisation: str = "lecun"

    def init(self, key: Array, features: Array, action: Array) -> PyTree:
        """Return parameters with leaves [C, ...]."""

        def one(key: Array) -> PyTree:
            params = self.network.init(key, features, action)
            return initialise(self.initialisation, params, key)

        return jax.vmap(one)(jax.random.split(key, self.num))

    def values(self, params: PyTree, features: Array, action: Array) -> Array:
        """Return the critics' values [B, C] of features [B, ...] and actions [B, D]."""
        values = jax.vmap(self.network.apply, (0, None, None), -1)(params, features, action)
        return jnp.asarray(values)

    def first(self, params: PyTree, features: Array, action: Array) -> Array:
        """Return the first critic's values [B]; arguments as of `values`."""
        params = jax.tree.map(lambda leaf: leaf[0], params)
        return jnp.asarray(self.network.apply(params, features, action))


def explored(
    noise: Noise,
    policy: ContinuousPolicy,
    memory: PyTree,
    action: Array,
    keys: tuple[Array, Array],
    step: ArrayLike,
) -> tuple[Array, PyTree]:
    """Add noise to a policy's actions, and replace them by uniform ones for the first steps.

    Args:
      noise: as `policy.hyper` has it.
      policy: its hyper-parameters are read.
      memory: the noise's.
      action: [E, D] float32 in [-1, 1].
      keys: PRNG keys of the noise and of the uniform actions.
      step: steps of all environments so far, int32.

    Returns:
      Actions [E, D] float32 in [-1, 1], and the noise's new memory.
    """
    drawn, memory = noise.draw(policy.hyper, memory, keys[0], action.shape)
    action = jnp.clip(action + drawn, -1, 1)
    return uniform_at_first(action, keys[1], step, policy.hyper["random_steps"]), memory
