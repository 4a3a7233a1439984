"""Encoded rows of a pass: 16 bytes, with premultiplied indices and encoded reward.

A row is the wide record of the tabular semantics, with the rule's random choices already made.
Word 0: s * A + a, plus S * A if the second of two tables is updated. Word 1: s' * A. Word 2:
reward, as a table entry. Word 3: a' in bits 0-15, then one bit each for bootstrap (discount 1),
valid (not padding), greedy and second.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from accel_rl.types import Array, TabularTransition

ROW_WORDS = 4
MAX_ACTIONS = 65_536
_FLAGS = {"bootstrap": 16, "valid": 17, "greedy": 18, "second": 19}  # bit of each in word 3


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TabularRow:
    """Transition (or a batch of them), as input of a rule's arithmetic."""

    entry: Array  # [...] int32, index of the learning Q(s, a) in the flat tables [K * S * A]
    next_entry: Array  # [...] int32, index of Q(s', 0) in the first table
    reward: Array  # [...] the numerics' dtype
    next_action: Array  # [...] int32
    bootstrap: Array  # [...] bool, discount is 1
    valid: Array  # [...] bool, false for padding
    greedy: Array  # [...] bool, the rule chose the greedy next action
    second: Array  # [...] bool, the second of two tables learns


def encode_transition(
    transition: TabularTransition, num_actions: int, reward: Array, valid: Array
) -> TabularRow:
    """Encode a transition, given its encoded reward; indices must be in range.

    Padding (`valid` false) becomes a row that accesses only entry 0 and changes nothing.
    """
    zero = np.int32(0)
    return TabularRow(
        entry=jnp.where(valid, transition.state * num_actions + transition.action, zero),
        next_entry=jnp.where(valid, transition.next_state * num_actions, zero),
        reward=jnp.where(valid, reward, jnp.zeros_like(reward)),
        next_action=jnp.where(valid, transition.next_action, zero),
        bootstrap=valid & (transition.discount != 0),
        valid=valid,
        greedy=jnp.zeros_like(valid),
        second=jnp.zeros_like(valid),
    )


def to_words(row: TabularRow) -> Array:
    """Encode a row as four words, int32 [..., 4]."""
    meta = row.next_action & np.int32(MAX_ACTIONS - 1)
    for name, bit in _FLAGS.items():
        meta = meta | (getattr(row, name).astype(jnp.int32) << np.int32(bit))
    reward = lax.bitcast_convert_type(row.reward, jnp.int32)
    return jnp.stack([row.entry, row.next_entry, reward, meta], axis=-1)


def from_words(words: Array, dtype: np.dtype) -> TabularRow:
    """Decode a row from four words [..., 4]; `dtype` is the reward's, the numerics' dtype."""
    entry, next_entry, reward, meta = (words[..., k] for k in range(ROW_WORDS))
    return TabularRow(
        entry=entry,
        next_entry=next_entry,
        reward=lax.bitcast_convert_type(reward, dtype),
        next_action=meta & np.int32(0xFFFF),
        **{name: (meta & np.int32(1 << bit)) != 0 for name, bit in _FLAGS.items()},
    )


def check_indices(transitions: TabularTransition, num_states: int, num_actions: int) -> None:
    """Raise ValueError at the first concrete index out of range; traced columns pass."""
    for name, limit in (
        ("state", num_states),
        ("action", num_actions),
        ("next_state", num_states),
        ("next_action", num_actions),
    ):
        _check_index(name, getattr(transitions, name), limit)


def _check_index(name: str, column: Array, limit: int) -> None:
    if isinstance(column, jax.core.Tracer):
        return
    values = np.asarray(column)  # NumPy, because jnp would trace even concrete arrays inside a jit
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >= limit:
        worst = low if low < 0 else high
        row = np.unravel_index(np.argmax(values == worst), values.shape)
        place = ", ".join(map(str, row))
        raise ValueError(f"row {place}: {name} is {worst}, must be in [0, {limit})")
