"""Which spaces an agent takes, and observations as what its networks read."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Array, Box, Discrete, Space

MOST_ACTIONS = 1 << 16  # random ones are made of 16 bits


def require_observations(space: Space) -> Space:
    """Raises TypeError unless the space is Discrete or a Box."""
    if not isinstance(space, (Discrete, Box)):
        raise TypeError(f"observation_space must be types.Discrete or types.Box, got {space!r}")
    return space


def require_discrete(agent: str, space: Space) -> Discrete:
    """Raises TypeError unless the space of actions is Discrete of 2 to 65,536 elements."""
    if not isinstance(space, Discrete) or not 2 <= space.n <= MOST_ACTIONS:
        raise TypeError(
            f"{agent} needs a Discrete action space of 2 to {MOST_ACTIONS:,}, got {space!r}"
        )
    return space


def require_bounded(agent: str, space: Space) -> Box:
    """Raises TypeError unless the space of actions is a Box of floats with finite bounds."""
    if not isinstance(space, Box) or not space.bounded or space.dtype.kind != "f":
        raise TypeError(f"{agent} needs a Box action space of floats with bounds, got {space!r}")
    return space


def features(space: Space, observation: Array) -> Array:
    """Observations as float32: one-hot if discrete, else of their own shape.

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
    """Zeros as `features` of a batch of one would be, to initialise networks with."""
    return features(space, jnp.zeros((1, *space.shape), _held(space.dtype)))


def _held(dtype: np.dtype) -> np.dtype:
    """The dtype that JAX holds such numbers in."""
    return jax.dtypes.canonicalize_dtype(dtype)
