"""Import of logs given as arrays."""

import numpy as np

from accel_rl.arguments import whole
from accel_rl.datasets.assembly import Log, assemble
from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset
from accel_rl.io.values import Json
from accel_rl.types import ArrayLike

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
            counted in `info.missing_next_action`, and offline SARSA refuses them. Without effect if
            `next_action` is given.

    Returns:
        The dataset.

    Raises:
        DatasetError: columns differ in length or are not one-dimensional, a state or an action is
            not a whole number or is out of range, a reward is not finite in float32, a flag is
            neither 0 nor 1, or no row is left. The message names the column and the row, counted
            from 0.
        TypeError: a column does not hold numbers, or another argument is of the wrong type.
        ValueError: none of `terminated`, `truncated` and `discount` is given, or both `terminated`
            and `discount` are; or a size is out of range.
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
    if not any(name in columns for name in ENDS):
        raise ValueError(
            "nothing says where episodes end: give terminated, truncated or discount (a truncated "
            "of zeros for a log in which nothing terminates)"
        )
    if {"terminated", "discount"} <= set(columns):
        raise ValueError("terminated and discount say the same: give one of them")
    ends = {name: _flags(name, columns[name]) for name in ENDS if name in columns}
    never = np.zeros(len(columns["state"]), bool)
    terminated = ~ends["discount"] if "discount" in ends else ends.get("terminated", never)
    num_states, state, next_state = _indices(columns, "state", "next_state", num_states)
    actions = dict(columns)
    if "next_action" in columns:  # meaningless in rows that terminated
        actions["next_action"] = np.where(terminated, 0, columns["next_action"])
    num_actions, action, next_action = _indices(actions, "action", "next_action", num_actions)
    with np.errstate(over="ignore"):  # values beyond float32 become infinite, and are refused below
        reward = columns["reward"].astype(np.float32)
    _refuse(columns, "reward", ~np.isfinite(reward), "must be finite in float32")
    assert next_state is not None
    goes_on = next_state[:-1] == state[1:]
    if next_action is not None:
        goes_on &= next_action[:-1] == action[1:]
    last = terminated | ends.get("truncated", never) | ~np.append(goes_on, False)
    log = Log(state, action, reward, next_state, terminated, last, next_action)
    info = DatasetInfo(environment, num_states, num_actions, policy)
    return assemble(log, info, require_next_action)


def _columns(given: dict[str, Json]) -> dict[str, np.ndarray]:
    """Convert the columns to arrays of numbers, and check that they have one length above 0."""
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
    if rows == 0:
        raise DatasetError("a dataset needs at least one row, got 0")
    return columns


def _flags(name: str, column: np.ndarray) -> np.ndarray:
    flags = {name: column}
    _refuse(flags, name, ~((column == 0) | (column == 1)), "must be 0 or 1")
    return column == 1


def _indices(
    columns: dict[str, np.ndarray], name: str, successor: str, limit: int | None
) -> tuple[int, np.ndarray, np.ndarray | None]:
    """Return the number of states or actions, and both of their columns as int32."""
    names = [each for each in (name, successor) if each in columns]
    if limit is not None:
        limit = whole(f"num_{name}s", limit, 1, _LIMIT)
    rule = f"must be a whole number in [0, {_LIMIT if limit is None else limit})"
    for each in names:
        column = columns[each]
        below = column < (_LIMIT if limit is None else limit)
        _refuse(columns, each, ~((column >= 0) & below & (column == np.floor(column))), rule)
    found = [columns[each].astype(np.int32) for each in names]
    if limit is None:
        limit = 1 + max(int(column.max()) for column in found)
    return limit, found[0], found[1] if len(found) > 1 else None


def _refuse(columns: dict[str, np.ndarray], name: str, bad: np.ndarray, rule: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        value = repr(columns[name][row].item()).removesuffix(".0")
        raise RowError(row, f"{name} is {value}, {rule}")
