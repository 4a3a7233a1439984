"""The logged experience of a finite MDP: its columns, and what is known about them."""

import dataclasses

import jax
import jax.numpy as jnp

from accel_rl import __version__
from accel_rl.types import Array, TabularTransition

FORMAT_VERSION = 1


class DatasetError(ValueError):
    """Experience that cannot be used. The message names the file, row and column where it can."""


@dataclasses.dataclass(frozen=True)
class DatasetInfo:
    """Where a dataset comes from. Hashable: it is the static part of `TabularDataset`."""

    environment: str  # the name it was collected in, or was given on import
    num_states: int  # S
    num_actions: int  # A
    policy: str  # the behaviour policy, in words
    seed: int | None = None  # None where it is not known
    dropped: int = 0  # rows left out on import, because their next action is not in the log
    missing_next_action: int = 0  # truncated rows whose next action is unknown and stands as 0
    version: str = __version__  # of the accel_rl that made it
    format_version: int = FORMAT_VERSION  # of the columns and their meaning


@dataclasses.dataclass(frozen=True)
class TabularDataset:
    """N transitions, episode after episode, each episode's rows in the order they happened.

    A pytree whose static part is `info`: a jitted function that takes a whole dataset is compiled
    again for another seed or environment, one that takes `transitions` is not.
    """

    transitions: TabularTransition  # every column [N]
    episode: Array  # [N] int32: 0, 1, 2, ..., the same for all rows of an episode
    info: DatasetInfo

    def __len__(self) -> int:
        return self.episode.shape[0]

    @property
    def episode_start(self) -> Array:
        """[N] bool: the row is the first of its episode."""
        return jnp.concatenate([jnp.ones(1, bool), self._episode_changes])

    @property
    def truncated(self) -> Array:
        """[N] bool: the last row of an episode that did not terminate.

        A time limit cut it, or the end of the collection or of the log did.
        """
        last = jnp.concatenate([self._episode_changes, jnp.ones(1, bool)])
        return last & (jnp.asarray(self.transitions.discount) == 1)

    @property
    def _episode_changes(self) -> Array:
        episode = jnp.asarray(self.episode)
        return episode[1:] != episode[:-1]


jax.tree_util.register_dataclass(TabularDataset, ["transitions", "episode"], ["info"])
