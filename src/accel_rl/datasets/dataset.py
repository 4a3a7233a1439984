"""Dataset of a finite MDP: columns of transitions, metadata, and their validation."""

import dataclasses
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import __version__
from accel_rl.arguments import whole
from accel_rl.types import Array, TabularTransition

FORMAT_VERSION = 1
_BLOCK = 1 << 20  # rows that are validated at once, so that masks take little memory

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


class DatasetError(ValueError):
    """Error for an invalid dataset; the message names file, row and column where known."""


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """Metadata of a dataset; hashable, as the static part of `TabularDataset`."""

    environment: str  # name, from the collection or given on import
    num_states: int  # S
    num_actions: int  # A
    policy: str  # description of the behaviour policy
    seed: int | None = None  # None if unknown
    dropped: int = 0  # rows dropped on import, because their next action is not in the log
    missing_next_action: int = 0  # truncated rows whose next action is unknown, stored as 0
    version: str = __version__  # of the accel_rl that made the dataset
    format_version: int = FORMAT_VERSION  # of the columns and their meaning


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TabularDataset:
    """Dataset of N transitions, ordered by episode, then by time.

    A pytree whose static part is `info`. A jitted function of a whole dataset is therefore
    recompiled for another seed or environment; a function of `transitions` is not.
    """

    transitions: TabularTransition  # every column [N]
    episode: Array  # [N] int32: 0, 1, 2, ..., the same for all rows of an episode
    info: DatasetInfo = dataclasses.field(metadata={"static": True})

    def __len__(self) -> int:
        return self.episode.shape[0]

    @property
    def episode_start(self) -> Array:
        """Mask [N] bool of each episode's first row."""
        return jnp.concatenate([jnp.ones(1, bool), self._episode_changes])

    @property
    def truncated(self) -> Array:
        """Mask [N] bool of the last row of each episode that did not terminate.

        Such an episode was cut by a time limit, or by the end of the collection or of the log.
        """
        last = jnp.concatenate([self._episode_changes, jnp.ones(1, bool)])
        return last & (jnp.asarray(self.transitions.discount) == 1)

    @property
    def _episode_changes(self) -> Array:
        episode = jnp.asarray(self.episode)
        return episode[1:] != episode[:-1]


def columns(dataset: TabularDataset) -> dict[str, np.ndarray]:
    """Return columns [N] as NumPy arrays, ordered as `COLUMNS`, without a copy on the host."""
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
        ValueError: a number of `info` is out of range; its subclass DatasetError for the first
            fault of the columns, by row (counted from 0), column, value and limit.
    """
    info, table = dataset.info, columns(dataset)
    for name, low in (
        ("num_states", 1),
        ("num_actions", 1),
        ("dropped", 0),
        ("missing_next_action", 0),
    ):
        whole(f"info.{name}", getattr(info, name), low, 2**31)
    rows = max(1, table["state"].size)
    for name, dtype in COLUMNS.items():
        column = table[name]
        if (column.dtype, column.shape) != (dtype, (rows,)):
            raise DatasetError(
                f"column {name} must be {dtype}[{rows}], got {column.dtype}{list(column.shape)}"
            )
    for start in range(0, rows, _BLOCK):
        # Blocks overlap by one row, so that each row meets the row below.
        block = {name: column[start : start + _BLOCK + 1] for name, column in table.items()}
        before = block["episode"][0] if start else np.int32(0)
        for name, bad, rule in _faults(block, info, before):
            if bad.any():
                row = int(np.argmax(bad))
                value = block[name][row]
                raise DatasetError(f"row {start + row} of {rows}: {name} is {value}, {rule}")


def _faults(
    table: dict[str, np.ndarray], info: DatasetInfo, before: np.int32
) -> Iterator[tuple[str, np.ndarray, str]]:
    """Yield column, mask of invalid rows and rule; later rules assume that earlier ones hold.

    `before` is the episode that the first row continues; 0 for the first row of a dataset.
    """
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

    change = np.diff(table["episode"], prepend=before)
    rule = "must be 0 in the first row, and then as in the row above or one more"
    bad = (change != 0) & (change != 1)
    bad[0] = change[0] != 0
    yield "episode", bad, rule

    inside = change[1:] == 0  # the row below continues this one
    yield "discount", inside & ended[:-1], "must be 1 where the row below is of the same episode"
    for name, successor in (("next_state", "state"), ("next_action", "action")):
        rule = f"must be the {successor} of the row below, of the same episode"
        yield name, inside & (table[name][:-1] != table[successor][1:]), rule
