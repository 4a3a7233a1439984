"""Policies over finite states: [S] integer actions, or [S, A] action probabilities."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import scalar_within, whole
from accel_rl.types import MDP, Array, ArrayLike


def greedy_policy(values: Array) -> Array:
    """Return the action of the highest value in each state; ties take the lowest index.

    Args:
        values: [..., S, A] action values.

    Returns:
        [..., S] int32.
    """
    return jnp.argmax(values, axis=-1).astype(jnp.int32)


def epsilon_greedy(values: Array, epsilon: ArrayLike) -> Array:
    """Return epsilon-greedy probabilities: uniform with probability epsilon, else greedy.

    Args:
        values: [..., S, A] action values; ties take the lowest index.
        epsilon: [] float in [0, 1].

    Returns:
        [..., S, A] float32.
    """
    epsilon = scalar_within("epsilon", epsilon, "[0, 1]")
    num_actions = values.shape[-1]
    greedy = jax.nn.one_hot(greedy_policy(values), num_actions, dtype=jnp.float32)
    return epsilon / num_actions + (1 - epsilon) * greedy


def uniform_policy(num_states: int, num_actions: int) -> Array:
    """Return probabilities of choosing every action equally often.

    Args:
        num_states: S.
        num_actions: A.

    Returns:
        [S, A] float32.
    """
    whole("num_states", num_states, 1)
    whole("num_actions", num_actions, 1)
    return jnp.full((num_states, num_actions), 1 / num_actions, jnp.float32)


def as_policy(policy: ArrayLike) -> Array:
    """Convert a policy to an int array [S] or a float32 array [S, A], or raise an error."""
    if not isinstance(policy, jax.Array):
        policy = np.asarray(policy)
    wanted = jnp.integer if policy.ndim == 1 else jnp.floating
    if policy.ndim not in (1, 2) or not jnp.issubdtype(policy.dtype, wanted):
        raise ValueError(
            f"policy must be integer [S] or float [S, A], got {policy.dtype}{list(policy.shape)}"
        )
    return jnp.asarray(policy) if policy.ndim == 1 else jnp.asarray(policy, jnp.float32)


def check_policy(mdp: MDP, policy: ArrayLike) -> Array:
    """Convert a policy to an array that fits the MDP; check its values unless they are traced."""
    policy = as_policy(policy)
    sizes = (mdp.num_states, mdp.num_actions)
    if policy.shape != sizes[: policy.ndim]:
        raise ValueError(
            f"policy must have shape {sizes[: policy.ndim]}, got {policy.shape}: "
            f"the MDP has {sizes[0]} states and {sizes[1]} actions"
        )
    if isinstance(policy, jax.core.Tracer):
        return policy
    values = np.asarray(policy)
    if policy.ndim == 1:
        bad = (values < 0) | (values >= sizes[1])
        limit = f"an action from 0 to {sizes[1] - 1}"
    else:
        bad = ~((values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < 1e-3))
        limit = "probabilities that sum to 1"
    if bad.any():
        state = int(np.argmax(bad))
        raise ValueError(f"policy[{state}] is {values[state]}, not {limit}")
    return policy
