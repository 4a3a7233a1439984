"""Monte Carlo estimate of the return per episode."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.tabular.policies import as_policy
from accel_rl.types import Array, ArrayLike


def monte_carlo_return(
    reset: Callable[[Array], tuple[Array, Array]],
    step: Callable[[Array, Array, Array], tuple[Array, Array, Array, Array]],
    policy: ArrayLike,
    key: Array,
    num_episodes: int,
    horizon: int,
) -> tuple[Array, Array]:
    """Undiscounted return of an episode by simulation, all episodes at once.

    The environment comes as two functions of uniformly distributed 32-bit words, each of which
    gives back what it left of them: those of `accel_rl.envs.dynamics` with the sampler filled in.
    With `jax.tree_util.Partial(dynamics.step, sampler)` repeated calls compile once.

    Args:
        reset: bits [N] uint32 -> (state [N] int32, bits).
        step: (state [N] int32, action [N] int32, bits [N] uint32) ->
            (next_state [N] int32, reward [N] float32, terminated [N] bool, bits).
        policy: [S] int or [S, A] float.
        key: PRNG key.
        num_episodes: N, at least 2.
        horizon: steps to truncation.

    Returns:
        mean: [] float32, reward per episode.
        standard_error: [] float32, of the mean, from the episodes' sample variance.

    Raises:
        TypeError: the policy is neither integer nor float, a function none, or a number no int.
        ValueError: the policy has not 1 or 2 axes, num_episodes is below 2 or horizon below 1.
    """
    whole("num_episodes", num_episodes, 2)
    whole("horizon", horizon, 1)
    policy = as_policy(policy)
    partial = jax.tree_util.Partial
    return _monte_carlo_return(partial(reset), partial(step), policy, key, num_episodes, horizon)


@functools.partial(jax.jit, static_argnames=("num_episodes", "horizon"))
def _monte_carlo_return(
    reset: Callable[[Array], tuple[Array, Array]],
    step: Callable[[Array, Array, Array], tuple[Array, Array, Array, Array]],
    policy: Array,
    key: Array,
    num_episodes: int,
    horizon: int,
) -> tuple[Array, Array]:
    bounds = jnp.cumsum(policy, axis=-1) if policy.ndim == 2 else None

    def act(state: Array, bits: Array) -> Array:
        if bounds is None:
            return policy[state].astype(jnp.int32)
        row = bounds[state]
        uniform = (bits >> 8).astype(jnp.float32) * jnp.float32(2**-24)
        # Scaled by the row's own total, so that rounding never draws an action of probability 0.
        return jnp.sum(row <= (uniform * row[:, -1])[:, None], axis=-1).astype(jnp.int32)

    def advance(
        carry: tuple[Array, Array, Array], key: Array
    ) -> tuple[tuple[Array, Array, Array], None]:
        state, alive, total = carry
        bits = jax.random.bits(key, (2, num_episodes), jnp.uint32)
        next_state, reward, terminated, _ = step(state, act(state, bits[0]), bits[1])
        total = total + jnp.where(alive, reward, 0)
        return (next_state, alive & ~terminated, total), None

    key_reset, key_steps = jax.random.split(key)
    state, _ = reset(jax.random.bits(key_reset, (num_episodes,), jnp.uint32))
    start = (state, jnp.ones(num_episodes, bool), jnp.zeros(num_episodes, jnp.float32))
    (_, _, total), _ = jax.lax.scan(advance, start, jax.random.split(key_steps, horizon))
    return jnp.mean(total), jnp.std(total, ddof=1) / np.float32(num_episodes**0.5)
