"""Construction of an MDP's tables from lists of outcomes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.envs.dynamics import check_tables
from accel_rl.types import MDP

Outcome = tuple[float, int, float, bool]  # probability, next state, reward, terminated


def build_mdp(
    outcomes: Callable[[int, int], Sequence[Outcome]],
    num_actions: int,
    initial: np.ndarray,
    time_limit: int | None,
) -> MDP:
    """Build the tables of an MDP from a function that lists the outcomes of an action.

    Args:
        outcomes: maps (state, action) to its outcomes, whose order is kept. Shorter lists are
            padded with outcomes of probability 0 and reward 0 that stay in the state.
        num_actions: A.
        initial: [S] non-negative weights of the first states; scaled to sum to 1.
        time_limit: steps after which an episode is truncated; None for no limit.

    Returns:
        The MDP, [S, A, K] with K the length of the longest list.
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
    columns: dict[str, Any] = {
        "probability": table[..., 0].astype(np.float32),
        "next_state": table[..., 1].astype(np.int32),
        "reward": table[..., 2].astype(np.float32),
        "terminated": table[..., 3].astype(np.bool_),
        "initial": np.asarray(initial / np.sum(initial), np.float32),
    }
    mdp = MDP(**columns, time_limit=time_limit)
    check_tables(mdp)  # before conversion to jax arrays, which are traced under `jit`
    return jax.tree.map(jnp.asarray, mdp)
