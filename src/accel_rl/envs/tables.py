"""From lists of outcomes, as one writes an environment's rules, to the tables of an MDP."""

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import real, whole
from accel_rl.types import MDP

Outcome = tuple[float, int, float, bool]  # probability, next state, reward, terminated


def build_mdp(
    outcomes: Callable[[int, int], Sequence[Outcome]],
    num_actions: int,
    initial: np.ndarray,
    time_limit: int | None,
) -> MDP:
    """Fills the tables of an MDP from a function that lists what an action can lead to.

    Args:
        outcomes: maps (state, action) to its outcomes, whose order is kept. Shorter lists are
            padded with outcomes of probability 0 and reward 0 that stay in the state.
        num_actions: A.
        initial: [S] non-negative weights of the first states; scaled to sum to 1.
        time_limit: steps after which an episode is truncated, None for no limit.

    Returns:
        The MDP, [S, A, K] with K the length of the longest list.

    Raises:
        TypeError: time_limit is no int.
        ValueError: time_limit is below 1.
    """
    if time_limit is not None:
        whole("time_limit", time_limit, 1)
    num_states = len(initial)
    lists = [[outcomes(s, a) for a in range(num_actions)] for s in range(num_states)]
    depth = max(len(listed) for row in lists for listed in row)
    padded = [
        [[*listed, *[(0.0, s, 0.0, False)] * (depth - len(listed))] for listed in row]
        for s, row in enumerate(lists)
    ]
    table = np.array(padded, np.float64)  # [S, A, K, 4]
    return MDP(
        probability=jnp.asarray(table[..., 0], jnp.float32),
        next_state=jnp.asarray(table[..., 1], jnp.int32),
        reward=jnp.asarray(table[..., 2], jnp.float32),
        terminated=jnp.asarray(table[..., 3], jnp.bool_),
        initial=jnp.asarray(initial / np.sum(initial), jnp.float32),
        time_limit=time_limit,
    )


def check_probability(name: str, value: float) -> None:
    """Refuses a probability outside [0, 1].

    Raises:
        TypeError: it is no number.
        ValueError: naming the argument and its value.
    """
    real(name, value)
    if not (math.isfinite(value) and 0.0 <= value <= 1.0):
        raise ValueError(f"{name} must be between 0 and 1, got {value}")
