"""Validation of datasets: types, ranges and continuity of episodes."""

from collections.abc import Iterator

import numpy as np

from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset

# Dtypes of a dataset's columns, in their order on disk.
COLUMNS = {
    "state": np.dtype(np.int32),
    "action": np.dtype(np.int32),
    "reward": np.dtype(np.float32),
    "next_state": np.dtype(np.int32),
    "discount": np.dtype(np.float32),
    "next_action": np.dtype(np.int32),
    "episode": np.dtype(np.int32),
}


def columns(dataset: TabularDataset) -> dict[str, np.ndarray]:
    """Return the columns by name as NumPy arrays; columns already on the host are not copied.

    Args:
        dataset: any dataset.

    Returns:
        One [N] array for each name in `COLUMNS`, in that order.
    """
    table = {name: np.asarray(getattr(dataset.transitions, name)) for name in list(COLUMNS)[:-1]}
    return {**table, "episode": np.asarray(dataset.episode)}


def validate(dataset: TabularDataset) -> None:
    """Validate a dataset on the host.

    The checks cover types and lengths; the ranges of states, actions and discounts; finite rewards;
    and episode numbers 0, 1, 2, ... without interleaving. Within an episode each row must continue
    the row above: its state is that row's next state, its action that row's next action, and no row
    follows a termination. Rows that do not continue one another belong to different episodes and
    need different episode numbers.

    Args:
        dataset: the dataset, with concrete columns (not inside `jit`).

    Raises:
        DatasetError: the first fault found, by row (counted from 0), column, value and limit.
    """
    _check_info(dataset.info)
    table = columns(dataset)
    rows = _check_layout(table)
    for column, bad, rule in _faults(table, dataset.info):
        if bad.any():
            row = int(np.argmax(bad))
            raise DatasetError(f"row {row} of {rows}: {column} is {table[column][row]}, {rule}")


def _check_info(info: DatasetInfo) -> None:
    for name, low in (
        ("num_states", 1),
        ("num_actions", 1),
        ("dropped", 0),
        ("missing_next_action", 0),
    ):
        value = getattr(info, name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= 2**31:
            raise DatasetError(
                f"info.{name} must be an integer between {low} and 2**31, got {value!r}"
            )


def _check_layout(table: dict[str, np.ndarray]) -> int:
    rows = table["state"].size
    for name, dtype in COLUMNS.items():
        column = table[name]
        if column.dtype != dtype:
            raise DatasetError(f"column {name} must be {dtype}, got {column.dtype}")
        if column.shape != (rows,):
            raise DatasetError(
                f"column {name} must have the shape of column state, ({rows},), got {column.shape}"
            )
    if rows == 0:
        raise DatasetError("a dataset needs at least one row, got 0")
    return rows


def _faults(
    table: dict[str, np.ndarray], info: DatasetInfo
) -> Iterator[tuple[str, np.ndarray, str]]:
    """Yield column, mask of invalid rows and rule; later rules assume that earlier ones hold."""
    for name, limit in (
        ("state", info.num_states),
        ("action", info.num_actions),
        ("next_state", info.num_states),
        ("next_action", info.num_actions),
    ):
        # As unsigned, a negative index is above every limit.
        yield name, table[name].view(np.uint32) >= limit, f"must be in [0, {limit})"
    yield "reward", ~np.isfinite(table["reward"]), "must be finite"

    discount = table["discount"]
    ended = discount == 0
    yield "discount", ~(ended | (discount == 1)), "must be 0 or 1"
    rule = "must be 0 where discount is 0"
    yield "next_action", ended & (table["next_action"] != 0), rule

    change = np.diff(table["episode"], prepend=np.int32(0))
    rule = "must be 0 in the first row, and then as in the row above or one more"
    bad = (change != 0) & (change != 1)
    bad[0] = change[0] != 0
    yield "episode", bad, rule

    inside = change[1:] == 0  # the row below continues this one
    yield "discount", inside & ended[:-1], "must be 1 where the row below is of the same episode"
    for name, successor in (("next_state", "state"), ("next_action", "action")):
        rule = f"must be the {successor} of the row below, of the same episode"
        yield name, inside & (table[name][:-1] != table[successor][1:]), rule
