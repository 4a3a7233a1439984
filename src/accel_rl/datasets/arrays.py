"""Import of logs given as arrays, and the assembly of datasets from any log's rows."""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset, validate
from accel_rl.io.values import Json
from accel_rl.types import ArrayLike, TabularTransition

REQUIRED = ("state", "action", "reward", "next_state")
ENDS = ("terminated", "truncated", "discount")
_LIMIT = 2**31 - 1  # of states and of actions, held as int32


class RowError(DatasetError):
    """Error for an invalid value in a row, counted from 0."""

    def __init__(self, row: int, message: str):
        super().__init__(message)
        self.row = row


def from_arrays(
    state: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    next_state: ArrayLike,
    terminated: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
    *,
    discount: ArrayLike | None = None,
    next_action: ArrayLike | None = None,
    num_states: int | None = None,
    num_actions: int | None = None,
    environment: str = "unnamed",
    policy: str = "unknown, imported from arrays",
    require_next_action: bool = True,
) -> TabularDataset:
    """Make a dataset from the columns of a log, N rows in chronological order.

    An episode ends at a row marked by `terminated` or `truncated`, and where the state of the row
    below is not this row's next state. An end that is not marked as a termination is a truncation,
    as is the end of the log; in a shuffled log almost every row is therefore an episode of its own.
    The next action of a row is the action of the row below in the same episode, unless
    `next_action` is given.

    Args:
        state: [N] whole numbers of any integer or floating type, from 0.
        action: [N], likewise.
        reward: [N] numbers, finite in float32.
        next_state: [N], as `state`; at the end of an episode its final state, not the first state
            of the next episode.
        terminated: [N] bool, or 0 and 1: the next state is terminal.
        truncated: [N] bool, or 0 and 1: the episode was cut, for example by a time limit. A row
            that is both counts as terminated.
        discount: [N] of 0 and 1, in place of `terminated`: 0 where the episode terminated.
        next_action: [N] whole numbers, the action that the policy took or would take in the next
            state; ignored in rows that terminated.
        num_states: S; the largest state plus 1 if None.
        num_actions: A; the largest action plus 1 if None.
        environment: name stored with the data.
        policy: description of the behaviour policy, stored with the data.
        require_next_action: drop the rows whose next action is unknown, the last of each truncated
            episode; `info.dropped` counts them. If False, they are kept with next action 0 and
            counted in `info.missing_next_action`: do not give them to rules that read next actions,
            such as SARSA. Without effect if `next_action` is given.

    Returns:
        The dataset.

    Raises:
        DatasetError: the log is not valid; the message names the column and the row, counted
            from 0.
    """
    given = {
        "state": state,
        "action": action,
        "reward": reward,
        "next_state": next_state,
        "terminated": terminated,
        "truncated": truncated,
        "discount": discount,
        "next_action": next_action,
    }
    columns = {
        name: column for name, column in given.items() if column is not None or name in REQUIRED
    }
    try:
        return assembled(columns, num_states, num_actions, environment, policy, require_next_action)
    except RowError as error:
        raise DatasetError(f"row {error.row}: {error}") from None


def assembled(
    given: dict[str, Json],
    num_states: int | None,
    num_actions: int | None,
    environment: str,
    policy: str,
    require_next_action: bool,
) -> TabularDataset:
    """Implement `from_arrays` for columns by name; raise a `RowError` for an invalid row."""
    columns = _columns(given)
    if not any(name in columns for name in ENDS) or {"terminated", "discount"} <= set(columns):
        raise ValueError(
            "to tell where episodes end, give terminated or discount, truncated, or both (a "
            "truncated of zeros for a log in which nothing terminates)"
        )
    ends = {name: _flags(name, columns[name]) for name in ENDS if name in columns}
    never = np.zeros(len(columns["state"]), bool)
    terminated = ~ends["discount"] if "discount" in ends else ends.get("terminated", never)
    num_states, state, next_state = _indices(columns, "state", "next_state", num_states)
    actions = dict(columns)
    if "next_action" in columns:  # meaningless in rows that terminated
        actions["next_action"] = np.where(terminated, 0, columns["next_action"])
    num_actions, action, next_action = _indices(actions, "action", "next_action", num_actions)
    reward = rewards(columns)
    assert next_state is not None
    goes_on = next_state[:-1] == state[1:]
    if next_action is not None:
        goes_on &= next_action[:-1] == action[1:]
    last = terminated | ends.get("truncated", never) | ~np.append(goes_on, False)
    log = Log(state, action, reward, next_state, terminated, last, next_action)
    info = DatasetInfo(environment, num_states, num_actions, policy)
    return assemble(log, info, require_next_action)


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


def _columns(given: dict[str, Json]) -> dict[str, np.ndarray]:
    """Convert the columns to arrays of numbers, and check that they have one length."""
    columns = {name: np.asarray(column) for name, column in given.items()}
    rows = columns["state"].size
    for name, column in columns.items():
        kinds = "biuf" if name in ENDS else "iuf"
        # NumPy does not give JAX's small floats, such as bfloat16, the kind "f".
        if column.dtype.kind not in kinds and "float" not in str(column.dtype):
            raise TypeError(f"{name} must be of numbers, got {column.dtype}")
        if column.shape != (rows,):
            raise DatasetError(
                f"{name} must have the shape of state, ({rows},), got {column.shape}"
            )
    return columns


def _flags(name: str, column: np.ndarray) -> np.ndarray:
    refuse({name: column}, name, ~((column == 0) | (column == 1)), "must be 0 or 1")
    return column == 1


def _indices(
    columns: dict[str, np.ndarray], name: str, successor: str, limit: int | None
) -> tuple[int, np.ndarray, np.ndarray | None]:
    """Return the number of states or actions, and both of their columns as int32."""
    names = [each for each in (name, successor) if each in columns]
    if limit is not None:
        limit = whole(f"num_{name}s", limit, 1, _LIMIT)
    found = [indices(columns, each, _LIMIT if limit is None else limit) for each in names]
    if limit is None:
        limit = 1 + max(int(column.max(initial=0)) for column in found)
    return limit, found[0], found[1] if len(found) > 1 else None


def indices(columns: Mapping[str, np.ndarray], name: str, limit: int) -> np.ndarray:
    """Return a column as int32; raise a `RowError` for a number that is no index below `limit`."""
    column = columns[name]
    good = (column >= 0) & (column < limit) & (column == np.floor(column))
    refuse(columns, name, ~good, f"must be a whole number in [0, {limit})")
    return column.astype(np.int32)


def rewards(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the rewards [N] float32; raise a `RowError` if one is not finite in float32."""
    with np.errstate(over="ignore"):  # values beyond float32 become infinite
        reward = columns["reward"].astype(np.float32)
    refuse(columns, "reward", ~np.isfinite(reward), "must be finite in float32")
    return reward


def refuse(columns: Mapping[str, np.ndarray], name: str, bad: np.ndarray, rule: str) -> None:
    """Raise a `RowError` for the first bad row of a column."""
    if bad.any():
        row = int(np.argmax(bad))
        value = repr(columns[name][row].item()).removesuffix(".0")
        raise RowError(row, f"{name} is {value}, {rule}")
