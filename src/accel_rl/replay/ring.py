"""Ring of rows: the slots that hold items, their generations, and those that may be drawn.

A row is one step of all environments; slot = row * num_envs + environment. The newest rows, whose
windows are incomplete, and the oldest rows, whose histories are overwritten first, are not drawn.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.types import Array


@dataclasses.dataclass(frozen=True)
class Ring:
    """Sizes of a ring; static.

    Attributes:
      capacity: number of slots.
      num_envs: slots in a row.
      window: rows that an item spans, from its own on.
      history: rows before its own that an item needs.
    """

    capacity: int
    num_envs: int = 1
    window: int = 1
    history: int = 0

    def __post_init__(self) -> None:
        whole("capacity", self.capacity, 1, 2**30)
        for name, least in (("num_envs", 1), ("window", 1), ("history", 0)):
            whole(name, getattr(self, name), least)
        if self.capacity % self.num_envs:
            below = self.capacity // self.num_envs * self.num_envs
            raise ValueError(
                f"capacity must be a multiple of num_envs ({self.num_envs}), got {self.capacity}: "
                f"try {below or self.num_envs}"
            )
        if self.rows < self.window + self.history:
            raise ValueError(
                f"capacity must hold an item's {self.window + self.history} steps of each "
                f"environment, at least {(self.window + self.history) * self.num_envs}, got "
                f"{self.capacity}"
            )

    @property
    def rows(self) -> int:
        """Steps of each environment that the ring holds."""
        return self.capacity // self.num_envs

    @property
    def reach(self) -> int:
        """Rows that one item needs: its history, its own, and the rest of its window."""
        return self.window + self.history


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cursor:
    """Position of the next row; a pytree of scalars."""

    row: Array  # int32 in [0, rows), the row to write next
    laps: Array  # uint32, times that the ring was filled, modulo 2**32


def wrap(slots: Array, capacity: int) -> Array:
    """Wrap slots in [0, 2 * capacity) around the end of the capacity, int32."""
    return jnp.where(slots >= capacity, slots - np.int32(capacity), slots)


def start() -> Cursor:
    """Return the cursor of an empty ring."""
    return Cursor(jnp.int32(0), jnp.uint32(0))


def advance(ring: Ring, cursor: Cursor, rows: int) -> Cursor:
    """Return the cursor after `rows` more rows, at most the ring's."""
    row = cursor.row + np.int32(rows)
    wraps = row >= ring.rows
    return Cursor(
        jnp.where(wraps, row - np.int32(ring.rows), row), cursor.laps + wraps.astype(jnp.uint32)
    )


def span(ring: Ring, cursor: Cursor) -> tuple[Array, Array]:
    """Return the span that may be drawn: its first slot and its size around the ring, int32."""
    written = jnp.where(cursor.laps > 0, np.int32(ring.rows), cursor.row)
    # In a full ring, the next writes overwrite the history of the oldest rows.
    oldest = jnp.minimum(written, np.int32(ring.rows - ring.history))
    first = cursor.row - oldest
    first = jnp.where(first < 0, first + np.int32(ring.rows), first)
    count = jnp.maximum(oldest - np.int32(ring.window - 1), np.int32(0))
    return first * np.int32(ring.num_envs), count * np.int32(ring.num_envs)


def generations(ring: Ring, cursor: Cursor, slots: Array) -> Array:
    """Return the lap of the ring that wrote each slot, uint32 as `slots`."""
    # Rows from the cursor on were written in the lap before. Laps wrap at 2**32: generations are
    # compared for equality only.
    ahead = slots // np.int32(ring.num_envs) >= cursor.row
    return cursor.laps - ahead.astype(jnp.uint32)


def current(ring: Ring, cursor: Cursor, slots: Array, generation: Array) -> Array:
    """Return True where a slot still holds the item of that generation and may be drawn, bool."""
    age = cursor.row - np.int32(1) - slots // np.int32(ring.num_envs)
    age = jnp.where(age < 0, age + np.int32(ring.rows), age)
    inside = (age >= ring.window - 1) & (age < ring.rows - ring.history)
    return inside & (generations(ring, cursor, slots) == generation)
