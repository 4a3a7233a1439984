"""Partition of logged experience over DPUs, and the encoded rows that backends load."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.pim.cost import split_rows
from accel_rl.pim.cost.owner import count_runs, stable_order
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import MAX_ACTIONS, check_indices, encode_transition, to_words
from accel_rl.types import Array, ArrayLike, TabularTransition

LANES = 16  # of a DPU by owner; a DPU's pipeline needs 11 tasklets at work
_ALIGNMENT = 64  # bytes of jax's buffers on the CPU
_BLOCK = 1 << 20  # rewards that are counted at once
CODEBOOK = 256  # most distinct rewards of short records; ARL_CODEBOOK of kernels/upmem/interface.h


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Chunks:
    """Log cut into one contiguous chunk for each of D DPUs, padded to T transitions each.

    By owner the log is sorted by (state, action) first, and each chunk is cut into L lanes.
    """

    transitions: TabularTransition  # columns [D, T]
    lengths: Array  # [D] int32, transitions of each chunk; the rest is padding
    num_states: int = dataclasses.field(metadata={"static": True})  # S
    num_actions: int = dataclasses.field(metadata={"static": True})  # A
    lanes: int = dataclasses.field(default=0, metadata={"static": True})  # L; 0: by time
    runs: int = dataclasses.field(default=0, metadata={"static": True})  # R, most of any DPU

    @property
    def num_dpus(self) -> int:
        """Number of DPUs, D."""
        return self.lengths.shape[0]

    @property
    def capacity(self) -> int:
        """Length of a padded chunk, T."""
        return self.transitions.state.shape[1]


def chunk_lengths(num_rows: int, num_dpus: int) -> np.ndarray:
    """Return chunk lengths, int32 [D]; the first `num_rows % num_dpus` are longer by one."""
    return np.asarray(split_rows(num_rows, num_dpus), np.int32)


def partition(
    transitions: TabularTransition,
    num_dpus: int,
    num_states: int,
    num_actions: int,
    by: str = "time",
    lanes: int = LANES,
) -> Chunks:
    """Cut transitions into contiguous chunks, one for each DPU.

    NumPy columns, which `datasets.load(path, mapped=True)` leaves in their file, are copied once,
    into the chunks. By owner, the order of rows (8 bytes each) and one sorted column come on top.

    Args:
      transitions: columns [N], in the order of the log.
      num_dpus: D, from 1 to N.
      num_states: S.
      num_actions: A, from 1 to 65,536.
      by: "time" cuts the log as it is: every DPU trains a table of its own. "owner" sorts it by
        (state, action) first, stably: a DPU trains few entries, and only they are exchanged.
      lanes: L, parts of a DPU's chunk that train independently by owner, each on one tasklet; at
        least 1. Unused by time.

    Returns:
      The chunks; the first N mod D are longer by one transition.
    """
    one_of("by", by, ("time", "owner"))
    num_rows = check_log(transitions, num_dpus, num_states, num_actions)
    whole("lanes", lanes, 1)
    lengths = chunk_lengths(num_rows, num_dpus)
    cut = functools.partial(_cut, num_dpus=num_dpus)
    if by == "time":
        columns = jax.tree.map(cut, transitions)
        return Chunks(columns, jnp.asarray(lengths), num_states, num_actions)
    order, runs = _by_entry(transitions, num_states, num_actions, num_dpus, lanes)

    def sort(column: ArrayLike) -> ArrayLike:
        on_host = isinstance(column, np.ndarray) and isinstance(order, np.ndarray)
        return column[order] if on_host else jnp.asarray(column)[order]

    columns = jax.tree.map(lambda column: cut(sort(column)), transitions)
    return Chunks(columns, jnp.asarray(lengths), num_states, num_actions, lanes, runs)


def check_log(
    transitions: TabularTransition, num_dpus: int, num_states: int, num_actions: int
) -> int:
    """Check arguments of `partition`, and return the number of rows, N."""
    shapes = {np.shape(column) for column in jax.tree.leaves(transitions)}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(f"transitions must be columns [N] of one length, got shapes {shapes}")
    num_rows = transitions.state.shape[0]
    whole("num_dpus", num_dpus, 1, num_rows)
    whole("num_states", num_states, 1)
    whole("num_actions", num_actions, 1, MAX_ACTIONS)
    whole("num_states * num_actions", num_states * num_actions, 1, 2**31 - 1)
    check_indices(transitions, num_states, num_actions)
    return num_rows


def _cut(column: ArrayLike, num_dpus: int) -> Array:
    """Cut a column [N] into [D, T]; a shorter chunk ends with the next transition, or the last.

    By reshapes alone: an index of the rows would take more memory than a column, and longer.
    """
    column = column if isinstance(column, np.ndarray) else jnp.asarray(column)
    rest, longer = divmod(column.shape[0], num_dpus)
    split = longer * (rest + 1)
    first, shorter = column[:split].reshape(longer, rest + 1), column[split:].reshape(-1, rest)
    if isinstance(column, np.ndarray):
        # One array and no intermediate columns, because a log may nearly fill the memory.
        chunks = _empty(num_dpus, rest + bool(longer), column.dtype)
        chunks[longer:, :rest] = shorter
        if longer:
            chunks[:longer] = first
            chunks[longer:, rest] = np.append(shorter[1:, 0], column[-1])
        return jax.device_put(chunks)  # jnp.asarray would copy
    if not longer:
        return shorter
    behind = jnp.append(shorter[1:, 0], column[-1])
    padded = jnp.concatenate([shorter, behind[:, None]], axis=1)
    return jnp.concatenate([first, padded])


def _empty(rows: int, length: int, dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised array, aligned so that jax takes it over without a copy."""
    size = rows * length * dtype.itemsize
    buffer = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -buffer.ctypes.data % _ALIGNMENT
    return buffer[begin : begin + size].view(dtype).reshape(rows, length)


def _by_entry(
    transitions: TabularTransition, num_states: int, num_actions: int, dpus: int, lanes: int
) -> tuple[Array | np.ndarray, int]:
    """Return the stable order by entry, and the most runs of any DPU or, if traced, a bound."""
    state, action = transitions.state, transitions.action
    if isinstance(state, jax.core.Tracer) or isinstance(action, jax.core.Tracer):
        rows = split_rows(state.shape[0], dpus)[0]
        most = min(rows, num_states * num_actions + lanes - 1)
        return jnp.argsort(state * num_actions + action, stable=True), most
    entry = np.asarray(state) * np.int32(num_actions) + np.asarray(action)
    order = stable_order(entry)
    return order, int(count_runs(entry[order], dpus, lanes).max())


def encode_chunks(program: PassProgram, chunks: Chunks) -> Array:
    """Encode chunks as the rows that backends load, int32 [D, T, 4]."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))


def record_bytes(entries: int, num_actions: int, rewards: ArrayLike) -> int:
    """Return the bytes of a record in MRAM, 8 or 16, as `kernels/upmem/host/records.cpp`.

    Args:
      entries: S * A.
      num_actions: A.
      rewards: float32, all rewards. Fixed point may round them to fewer distinct values, and so
        shorten records. Traced rewards count as few distinct values.
    """
    wide = entries > 65_536 or num_actions > 256
    if not wide and not isinstance(rewards, jax.core.Tracer):
        wide = _distinct_exceed(np.asarray(rewards).reshape(-1), CODEBOOK)
    return 16 if wide else 8


def _distinct_exceed(rewards: np.ndarray, limit: int) -> bool:
    """Return whether float32 [N] holds more distinct bit patterns than `limit`."""
    found = np.empty(0, np.uint32)
    for start in range(0, len(rewards), _BLOCK):
        # By blocks: a sort of all rewards takes several times their memory.
        block = rewards[start : start + _BLOCK].view(np.uint32)
        found = np.union1d(found, block)
        if len(found) > limit:
            return True
    return False
