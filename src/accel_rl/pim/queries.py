"""What searches on DPUs are given: checked in Python, and in the form that DPUs take."""

import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.upmem.matcher import GROUP
from accel_rl.types import ArrayLike
from pim_emu import available_machines, load_machine

DTYPES = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32))
INT32_MAX = 2**31 - 1


def as_keys(keys: ArrayLike) -> np.ndarray:
    """Keys to be stored, [N] of uint8, uint16 or uint32.

    Raises:
      ValueError: they are of another dtype or shape.
    """
    if getattr(keys, "dtype", None) not in DTYPES:
        got = getattr(keys, "dtype", type(keys).__name__)
        raise ValueError(f"keys must be an array of uint8, uint16 or uint32, got {got}")
    stored = np.asarray(keys)
    if stored.ndim != 1 or not 1 <= len(stored) <= INT32_MAX:
        raise ValueError(f"keys must be [N] with N from 1 to {INT32_MAX}, got shape {stored.shape}")
    return stored


def as_valid(valid: ArrayLike | None, size: int) -> np.ndarray:
    """Valid bits, bool [N].

    Raises:
      ValueError: they are of another dtype or shape.
    """
    bits = np.ones(size, bool) if valid is None else np.asarray(valid)
    if bits.dtype != np.bool_ or bits.shape != (size,):
        raise ValueError(f"valid must be bool ({size},), got {bits.dtype} {bits.shape}")
    return bits


def as_integers(name: str, values: ArrayLike, limit: int, length: int | None = None) -> np.ndarray:
    """Numbers from 0 to `limit` as uint32 [M].

    Args:
      name: of the argument, for errors.
      values: integer [M].
      limit: the largest, below 2^32.
      length: M, where it must be a certain one.

    Raises:
      ValueError: they are not integers, of another shape, or out of range.
    """
    numbers = np.asarray(values)
    if numbers.size == 0 and not hasattr(values, "dtype"):
        numbers = numbers.astype(np.uint32)  # NumPy takes an empty list for floats
    wanted = "[M]" if length is None else f"[{length}]"
    if numbers.ndim != 1 or length not in (None, len(numbers)):
        raise ValueError(f"{name} must be {wanted}, got shape {numbers.shape}")
    large = numbers.dtype == object and all(isinstance(number, int) for number in numbers)
    if not (large or np.issubdtype(numbers.dtype, np.integer)):
        raise ValueError(f"{name} must be of integers, got {numbers.dtype}")
    outside = (numbers < 0) | (numbers > limit)
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(f"{name}[{first}] must be in [0, {limit}], got {numbers[first]}")
    return np.ascontiguousarray(numbers, np.uint32)


def check_machine(size: int, bits: int, dpus: int, tasklets: int, machine: str | None) -> int:
    """Groups of 64 slots that each DPU gets of `size`.

    Raises:
      TypeError: a number is no int.
      ValueError: the machine is unknown, has fewer DPUs or tasklets, or too little MRAM.
    """
    known = available_machines()
    if machine is not None and machine not in known:
        raise ValueError(f"machine must be {' or '.join(known)}, got {machine!r}")
    limits = load_machine() if machine is None else load_machine(machine)
    for name, value, limit in (
        ("dpus", dpus, limits.total_dpus),
        ("tasklets", tasklets, limits.max_tasklets),
    ):
        whole(name, value, 1, limit)
    groups = -(-size // (dpus * GROUP))
    # Keys, valid bits, and the match lines of a query.
    of_a_group = GROUP * bits // 8 + 2 * GROUP // 8
    needed = groups * of_a_group
    if needed > limits.mram_bytes:
        enough = -(-size // (limits.mram_bytes // of_a_group * GROUP))
        raise ValueError(
            f"keys: {size:,} of {bits} bits on {dpus} DPUs need {needed:,} B of MRAM each, which "
            f"has {limits.mram_bytes:,} B; {enough} DPUs hold them"
        )
    return groups


def ternary(wanted: np.ndarray, care: np.ndarray) -> np.ndarray:
    """Ternary queries, uint32 [M, 2]: what a key must be in the bits of the mask, and the mask."""
    return columns(wanted & care, care)


def columns(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Queries as DPUs take them, uint32 [M, 2]."""
    return np.ascontiguousarray(np.stack([first, second], axis=1), np.uint32)


def merged(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint ranges in ascending order with the same union as ranges from `low` to `high`.

    Args:
      low: int64 [M], M at least 1.
      high: int64 [M], none below its `low`.

    Returns:
      Two int64 [at most M].
    """
    order = np.argsort(low)
    low, reached = low[order], np.maximum.accumulate(high[order])
    starts = np.append(True, low[1:] > reached[:-1] + 1)
    ends = np.append(starts[1:], True)
    return low[starts], reached[ends]
