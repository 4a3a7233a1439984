"""Partition of logged experience over DPUs."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import integer
from accel_rl.pim.cost import split_rows
from accel_rl.tabular.rows import MAX_ACTIONS
from accel_rl.types import Array, TabularTransition


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Chunks:
    """Log cut into one contiguous chunk for each of D DPUs, padded to T transitions each."""

    transitions: TabularTransition  # columns [D, T]
    lengths: Array  # [D] int32, transitions of each chunk; the rest is padding
    num_states: int = dataclasses.field(metadata={"static": True})  # S
    num_actions: int = dataclasses.field(metadata={"static": True})  # A

    @property
    def num_dpus(self) -> int:
        """Number of DPUs, D."""
        return self.lengths.shape[0]

    @property
    def capacity(self) -> int:
        """Length of a padded chunk, T."""
        return self.transitions.state.shape[1]


def chunk_lengths(num_rows: int, num_dpus: int) -> np.ndarray:
    """Return chunk lengths, int32 [D]; the first `num_rows % num_dpus` are longer by one.

    Raises:
      ValueError: if `num_dpus` is not from 1 to `num_rows`.
    """
    return np.asarray(split_rows(num_rows, num_dpus), np.int32)


def partition(
    transitions: TabularTransition, num_dpus: int, num_states: int, num_actions: int
) -> Chunks:
    """Cut transitions into contiguous chunks, one for each DPU.

    Args:
      transitions: columns [N], in the order of the log.
      num_dpus: D, from 1 to N.
      num_states: S.
      num_actions: A.

    Returns:
      The chunks; the first N mod D are longer by one transition.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if a number or a concrete index is out of range, or columns differ in length.
    """
    integer("num_dpus", num_dpus)
    integer("num_states", num_states)
    integer("num_actions", num_actions)
    shapes = {np.shape(column) for column in jax.tree.leaves(transitions)}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(f"transitions must be columns [N] of one length, got shapes {shapes}")
    num_rows = transitions.state.shape[0]
    if not 1 <= num_dpus <= num_rows:
        raise ValueError(f"num_dpus must be between 1 and the {num_rows} rows, got {num_dpus}")
    if num_states < 1 or not 1 <= num_actions <= MAX_ACTIONS:
        raise ValueError(
            f"num_states must be at least 1 and num_actions between 1 and {MAX_ACTIONS}, got "
            f"{num_states} and {num_actions}"
        )
    for name, limit in (
        ("state", num_states),
        ("action", num_actions),
        ("next_state", num_states),
        ("next_action", num_actions),
    ):
        _check_index(name, getattr(transitions, name), limit)
    lengths = chunk_lengths(num_rows, num_dpus)
    # The padding of a shorter chunk reads the next chunk, or repeats the log's last transition.
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])])
    index = np.minimum(starts[:, None] + np.arange(lengths[0]), num_rows - 1)
    columns = jax.tree.map(lambda column: jnp.asarray(column)[index], transitions)
    return Chunks(columns, jnp.asarray(lengths), num_states, num_actions)


def _check_index(name: str, column: Array, limit: int) -> None:
    if isinstance(column, jax.core.Tracer):
        return
    values = np.asarray(column)  # NumPy, because jnp would trace even concrete arrays inside a jit
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >= limit:
        worst = low if low < 0 else high
        row = int(np.argmax(values == worst))
        raise ValueError(f"row {row}: {name} is {worst}, must be in [0, {limit})")
