"""Dataset of a finite MDP: columns of transitions and metadata."""

import dataclasses

import jax
import jax.numpy as jnp

from accel_rl import __version__
from accel_rl.types import Array, TabularTransition

FORMAT_VERSION = 1


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
