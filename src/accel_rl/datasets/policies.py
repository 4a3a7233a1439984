"""Behaviour policies over a finite state space, sampled from the random words of `envs.dynamics`.

A policy given by probabilities is represented as an MDP with one action, whose outcomes are the
policy's actions. The same arithmetic thus draws outcomes, first states and actions.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole, within
from accel_rl.envs import dynamics
from accel_rl.types import MDP, Array, ArrayLike


@dataclasses.dataclass(frozen=True)
class Policy:
    """Behaviour policy of a finite MDP, made by the functions below.

    The description is not part of the pytree, so that one compiled program serves every epsilon.
    """

    num_actions: int  # A, static
    sampler: (
        dynamics.MDPSampler | None
    )  # outcomes are actions; None: all actions are equally likely
    description: str = "not described"


jax.tree_util.register_dataclass(Policy, ["sampler"], ["num_actions"], drop_fields=["description"])


def random_policy(num_actions: int) -> Policy:
    """Make the uniformly random policy of `num_actions` actions, at least 1."""
    whole("num_actions", num_actions, 1)
    return Policy(num_actions, None, "random")


def epsilon_greedy_policy(q: ArrayLike, epsilon: float) -> Policy:
    """Make the epsilon-greedy policy of a table of action values.

    The greedy action has probability 1 - epsilon + epsilon / A; ties go to the lowest action.

    Args:
        q: [S, A] action values, finite.
        epsilon: in [0, 1].
    """
    values = np.asarray(q, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("q must be finite, got NaN or infinity")
    within("epsilon", epsilon, "[0, 1]")
    num_states, num_actions = values.shape
    probability = np.full(values.shape, epsilon / num_actions)
    probability[np.arange(num_states), values.argmax(axis=1)] += 1 - epsilon
    return Policy(num_actions, _action_sampler(probability), f"epsilon-greedy, epsilon {epsilon:g}")


def stochastic_policy(probability: ArrayLike) -> Policy:
    """Make a policy from action probabilities.

    Args:
        probability: [S, A], not negative; each row sums to 1 within 1e-4 and is normalised.
    """
    table = np.asarray(probability, np.float64)
    return Policy(table.shape[1], _action_sampler(table), "given action probabilities")


def deterministic_policy(actions: ArrayLike, num_actions: int) -> Policy:
    """Make a policy from one action for each state.

    Args:
        actions: [S] integers in [0, A).
        num_actions: A.
    """
    table = np.asarray(actions)
    if table.dtype.kind not in "iu" or ((table < 0) | (table >= num_actions)).any():
        raise ValueError(f"actions must be integers in [0, {num_actions})")
    sampler = _action_sampler(np.ones((len(table), 1)), table[:, None])
    return Policy(num_actions, sampler, "given actions")


def draw(policy: Policy, state: Array, bits: Array) -> tuple[Array, Array]:
    """Sample the policy's actions in a batch of states.

    Args:
        policy: the policy.
        state: [...] int32 in [0, S).
        bits: [...] uint32, uniformly distributed words.

    Returns:
        action: [...] int32 in [0, A).
        bits: [...] uint32, what is left of the words.
    """
    if policy.sampler is None:
        return dynamics.choose(bits, policy.num_actions)
    action, _, _, bits = dynamics.step(policy.sampler, state, jnp.zeros_like(state), bits)
    return action, bits


def _action_sampler(
    probability: np.ndarray, actions: np.ndarray | None = None
) -> dynamics.MDPSampler:
    """Make a sampler whose only action has `actions` ([S, K], by default 0..K-1) as outcomes."""
    num_states, count = probability.shape
    if actions is None:
        actions = np.broadcast_to(np.arange(count), probability.shape)
    nothing = np.zeros((num_states, 1, count))
    first = np.zeros(num_states)
    first[0] = 1
    tables: tuple[Any, ...] = (probability[:, None], actions[:, None], nothing, nothing, first)
    return dynamics.make_sampler(MDP(*tables))
