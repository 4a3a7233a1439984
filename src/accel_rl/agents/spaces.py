"""Checks of an agent's spaces, and conversion of observations to network inputs."""

import jax
import jax.numpy as jnp

from accel_rl.types import Array, Box, Discrete, Space

MOST_ACTIONS = 1 << 16  # `exploration.epsilon_greedy` draws random actions from 16 bits


def require_observations(space: Space) -> None:
    """Raise TypeError unless the space is Discrete or a Box."""
    if not isinstance(space, (Discrete, Box)):
        raise TypeError(f"observation_space must be types.Discrete or types.Box, got {space!r}")


def require_discrete(agent: str, space: Space) -> Discrete:
    """Raise TypeError unless the action space is Discrete with 2 to 65,536 elements."""
    if not isinstance(space, Discrete) or not 2 <= space.n <= MOST_ACTIONS:
        raise TypeError(
            f"{agent} needs a Discrete action space of 2 to {MOST_ACTIONS:,}, got {space!r}"
        )
    return space


def require_bounded(agent: str, space: Space) -> Box:
    """Raise TypeError unless the action space is a Box of floats with finite bounds."""
    if not isinstance(space, Box) or not space.bounded or space.dtype.kind != "f":
        raise TypeError(f"{agent} needs a Box action space of floats with bounds, got {space!r}")
    return space


def features(space: Space, observation: Array) -> Array:
    """Convert observations to float32: one-hot if discrete, else of the same shape.

    Args:
      space: of one observation.
      observation: [..., *space.shape].

    Returns:
      [..., n] if the space is Discrete(n), [..., *space.shape] otherwise.
    """
    if isinstance(space, Discrete):
        return jax.nn.one_hot(observation, space.n, dtype=jnp.float32)
    return jnp.asarray(observation, jnp.float32)


def example_features(space: Space) -> Array:
    """Return zero `features` of a batch of one, to initialise networks."""
    return features(space, jnp.zeros((1, *space.shape), jax.dtypes.canonicalize_dtype(space.dtype)))
