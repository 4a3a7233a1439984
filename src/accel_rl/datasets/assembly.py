"""Assembly of datasets from log rows: episodes, discounts and next actions."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset
from accel_rl.datasets.validation import validate
from accel_rl.types import TabularTransition


@dataclasses.dataclass(frozen=True)
class Log:
    """Log of N rows in chronological order; `last` marks the final row of each episode."""

    state: np.ndarray  # [N] int32
    action: np.ndarray  # [N] int32
    reward: np.ndarray  # [N] float32
    next_state: np.ndarray  # [N] int32
    terminated: np.ndarray  # [N] bool
    last: np.ndarray  # [N] bool, true wherever `terminated` is
    next_action: np.ndarray | None = None  # [N] int32, complete; None if the log does not have them


def assemble(log: Log, info: DatasetInfo, require_next_action: bool) -> TabularDataset:
    """Complete a log to a valid dataset.

    The next action of a row is the log's own if it has them, else the action of the row below in
    the same episode. In the latter case the last row of a truncated episode has none. It is
    dropped, or kept with a 0 that no rule may use; `info` counts it either way. The row above a
    dropped row keeps its next action.

    Args:
        log: the rows.
        info: metadata; its counts are replaced.
        require_next_action: drop the rows whose next action is unknown.

    Returns:
        The dataset, with episodes numbered from 0.

    Raises:
        DatasetError: no row is left, or the dataset is not valid.
    """
    if log.next_action is None:
        missing = log.last & ~log.terminated
        next_action = np.where(log.last, 0, np.roll(log.action, -1))
    else:
        missing = np.zeros_like(log.last)
        next_action = np.where(log.terminated, 0, log.next_action)
    keep = ~missing if require_next_action else np.ones_like(missing)
    if not keep.any():
        raise DatasetError(
            f"none of the {len(keep)} rows has a known next action; "
            "require_next_action=False keeps them, for rules that do not use it"
        )
    # An episode without kept rows leaves a gap in `kept`, which the renumbering closes.
    kept = np.cumsum(log.last)[keep] - log.last[keep]
    episode = np.cumsum(np.diff(kept, prepend=kept[0]) != 0, dtype=np.int32)
    count = int(missing.sum())
    dataset = TabularDataset(
        TabularTransition(
            state=jnp.asarray(log.state[keep]),
            action=jnp.asarray(log.action[keep]),
            reward=jnp.asarray(log.reward[keep]),
            next_state=jnp.asarray(log.next_state[keep]),
            discount=jnp.asarray((~log.terminated[keep]).astype(np.float32)),
            next_action=jnp.asarray(next_action[keep]),
        ),
        jnp.asarray(episode),
        dataclasses.replace(
            info,
            dropped=count if require_next_action else 0,
            missing_next_action=0 if require_next_action else count,
        ),
    )
    validate(dataset)
    return dataset
