"""Estimate of an MDP from a log: the certainty-equivalent model of its transitions.

Relative frequencies and mean rewards of a log are its maximum-likelihood MDP. Q-learning over the
same rows, again and again with decreasing steps, converges to the optimal values of that MDP. Where
S x A is small, estimating and solving it takes about a second for a million rows. Reference: Sutton
and Barto, Reinforcement Learning, second edition, 2018, section 6.3.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.tabular.rows import check_indices
from accel_rl.types import MDP, Array, TabularTransition


def fit_mdp(
    transitions: TabularTransition,
    num_states: int,
    num_actions: int,
    *,
    num_outcomes: int | None = None,
    time_limit: int | None = None,
) -> MDP:
    """Estimate the MDP of a log from counts and mean rewards; pure, works under `jit` and `vmap`.

    A pair (s, a) that the log lacks ends the episode with reward 0, so that its value is 0: that of
    an entry of a table that starts at 0 and is never updated.

    Args:
      transitions: columns [N], in any order; a truncated transition is not terminated.
      num_states: S.
      num_actions: A.
      num_outcomes: K, the most distinct (s', terminated) of a pair; counted if None, which needs
        concrete transitions. Further outcomes are left out: the pair's probabilities then sum to
        less than 1, which `envs.dynamics.make_sampler` refuses.
      time_limit: steps to truncation, for `episode_return`.

    Returns:
      Tables [S, A, K], outcomes of a pair sorted by (s', terminated); `initial` [S] is the
      distribution of states in the log.
    """
    whole("num_states", num_states, 1)
    whole("num_actions", num_actions, 1)
    check_indices(transitions, num_states, num_actions)
    if num_outcomes is None:
        num_outcomes = _most_outcomes(transitions, num_actions)
    sizes = num_states, num_actions, whole("num_outcomes", num_outcomes, 1)
    return dataclasses.replace(_fit(transitions, *sizes), time_limit=time_limit)


def _most_outcomes(transitions: TabularTransition, num_actions: int) -> int:
    if isinstance(transitions.state, jax.core.Tracer):
        raise ValueError("num_outcomes must be given where transitions are traced")
    pair = np.asarray(transitions.state, np.int64) * num_actions + np.asarray(transitions.action)
    ended = np.asarray(transitions.discount) == 0
    outcome = 2 * np.asarray(transitions.next_state, np.int64) + ended
    distinct = np.unique(pair * (outcome.max() + 1) + outcome) // (outcome.max() + 1)
    return int(np.unique(distinct, return_counts=True)[1].max())


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _fit(
    transitions: TabularTransition, num_states: int, num_actions: int, num_outcomes: int
) -> MDP:
    pair = transitions.state * num_actions + transitions.action
    outcome = 2 * transitions.next_state + (transitions.discount == 0).astype(jnp.int32)
    # Two keys, because S * A * 2 S may exceed int32.
    pair, outcome, reward = jax.lax.sort((pair, outcome, transitions.reward), num_keys=2)
    one = jnp.ones(1, bool)
    new_pair = jnp.concatenate([one, pair[1:] != pair[:-1]])
    new = new_pair | jnp.concatenate([one, outcome[1:] != outcome[:-1]])
    group = jnp.cumsum(new, dtype=jnp.int32)
    place = group - jax.lax.cummax(jnp.where(new_pair, group, 0))  # of an outcome in its pair
    table = num_states * num_actions, num_outcomes

    def total(values: Array, row: Array = pair) -> Array:
        return jnp.zeros(table, values.dtype).at[row, place].add(values, mode="drop")

    def first(values: Array) -> Array:
        return total(values, jnp.where(new, pair, table[0]))  # other rows are out of the table

    count = total(jnp.ones_like(pair))

    def add(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        """Add two runs of rows, if both are of one group."""
        return jnp.where(b[1], b[0], a[0] + b[0]), a[1] | b[1]

    # Rewards are summed as differences from a group's first: equal ones are exact, however many.
    # Others are summed pairwise: one after the other, millions of them lose digits.
    base = first(reward)
    differences = reward - base.at[pair, place].get(mode="fill", fill_value=0.0)
    running, _ = jax.lax.associative_scan(add, (differences, new))
    rest = total(running, jnp.where(jnp.append(new[1:], True), pair, table[0]))
    visits = jnp.zeros(table[0], jnp.int32).at[pair].add(1)
    unseen = (visits == 0)[:, None] & (jnp.arange(num_outcomes) == 0)
    share = count.astype(jnp.float32) / jnp.maximum(visits, 1).astype(jnp.float32)[:, None]
    kept = first(outcome)
    tables = (
        jnp.where(unseen, 1.0, share),
        kept // 2,
        base + rest / jnp.maximum(count, 1).astype(jnp.float32),
        (kept % 2 == 1) | unseen,
    )
    probability, next_state, mean, terminated = (
        each.reshape(num_states, num_actions, num_outcomes) for each in tables
    )
    seen = visits.reshape(num_states, num_actions).sum(1).astype(jnp.float32)
    return MDP(probability, next_state, mean, terminated, seen / jnp.float32(pair.shape[0]))
