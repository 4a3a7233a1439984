"""Initial priorities, which actors compute for the transitions that they collect."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent
from accel_rl.replay import n_step, td_priority
from accel_rl.types import Array, Batch, PyTree, Transition


def initial_priorities(
    agent: Agent, critics: PyTree, transitions: Transition, steps: int, gamma: Array, key: Array
) -> Array:
    """Compute priorities from n-step TD errors within a rollout.

    The last steps of a rollout have targets of fewer rewards: what follows is not yet known.

    Args:
      agent: its `td_error` is called.
      critics: parameters that `td_error` takes.
      transitions: leaves [rollout, E, ...], with final observations.
      steps: n, the most rewards in a target.
      gamma: discount factor.
      key: PRNG key.

    Returns:
      [rollout, E] float32.

    Reference: Horgan et al., "Distributed prioritized experience replay", ICLR 2018,
      section 3.
    """
    rollout, num_envs = transitions.reward.shape
    reach = min(steps, rollout)
    # The rollout ends after its last step: bootstrap there, as at a truncation.
    truncated = jnp.asarray(transitions.truncated).at[-1].set(True)
    window = np.arange(rollout)[:, None] + np.arange(reach)  # [rollout, reach]
    window = np.minimum(window, rollout - 1)  # not read beyond the cut
    fields = (transitions.reward, transitions.discount, truncated)
    per_env: PyTree = jax.vmap(n_step, in_axes=(1, 1, 1, None))
    reward, discount, cut = (each[window] for each in fields)
    result = jax.vmap(per_env, in_axes=(0, 0, 0, None))(reward, discount, cut, gamma)
    last = jnp.arange(rollout, dtype=jnp.int32)[:, None] + result.steps - np.int32(1)
    column = jnp.arange(num_envs, dtype=jnp.int32)
    batch = Batch(
        observation=transitions.observation,
        action=transitions.action,
        reward=result.reward,
        discount=result.discount,
        next_observation=jax.tree.map(
            lambda leaf: leaf[last, column], transitions.next_observation
        ),
        extras=transitions.extras,
    )
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)
    errors = agent.td_error(critics, flat, key)
    return td_priority(errors).reshape(rollout, num_envs)
