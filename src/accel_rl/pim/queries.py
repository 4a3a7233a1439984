"""Validation and encoding of the arguments of associative searches on DPUs."""

import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.upmem.matcher import GROUP
from accel_rl.pim.upmem.toolkit import known_machine
from accel_rl.types import ArrayLike

DTYPES = tuple(np.dtype(f"uint{bits}") for bits in (8, 16, 32))
INT32_MAX = 2**31 - 1


def as_keys(keys: ArrayLike) -> np.ndarray:
    """Return keys as a validated array, [N] of uint8, uint16 or uint32."""
    stored = np.asarray(keys)
    if stored.dtype not in DTYPES or stored.ndim != 1 or not 1 <= len(stored) <= INT32_MAX:
        raise ValueError(
            f"keys must be uint8, uint16 or uint32 [N] with N from 1 to {INT32_MAX}, got "
            f"{stored.dtype} {stored.shape}"
        )
    return stored


def as_valid(valid: ArrayLike, size: int) -> np.ndarray:
    """Return valid bits, bool [N], from bool [N] or one bool for all slots."""
    bits = np.asarray(valid)
    if bits.dtype != np.bool_ or bits.shape not in ((), (size,)):
        raise ValueError(f"valid must be bool [{size}] or a bool, got {bits.dtype} {bits.shape}")
    return np.broadcast_to(bits, (size,))


def as_integers(name: str, values: ArrayLike, limit: int, length: int | None = None) -> np.ndarray:
    """Return integers from 0 to `limit` as uint32 [M].

    Args:
      name: argument name in error messages.
      values: integer [M].
      limit: largest allowed value, below 2^32.
      length: required M; any if None.
    """
    numbers = np.asarray(values)
    if numbers.size == 0 and not hasattr(values, "dtype"):
        numbers = numbers.astype(np.uint32)  # NumPy makes an empty list float64
    # Python integers above 64 bits become objects, and are out of range.
    integral = np.issubdtype(numbers.dtype, np.integer) or (
        numbers.dtype == object and all(isinstance(number, int) for number in numbers.flat)
    )
    if not integral or numbers.ndim != 1 or length not in (None, len(numbers)):
        raise ValueError(
            f"{name} must be integer [{'M' if length is None else length}], got {numbers.dtype} "
            f"{numbers.shape}"
        )
    outside = (numbers < 0) | (numbers > limit)
    if outside.any():
        first = int(np.argmax(outside))
        raise ValueError(f"{name}[{first}] must be in [0, {limit}], got {numbers[first]}")
    return np.ascontiguousarray(numbers, np.uint32)


def check_machine(size: int, bits: int, dpus: int, tasklets: int, machine: str | None) -> int:
    """Check the machine's limits; return the groups of 64 slots per DPU, for `size` slots."""
    limits = known_machine(machine)
    whole("dpus", dpus, 1, limits.total_dpus)
    whole("tasklets", tasklets, 1, limits.max_tasklets)
    groups = -(-size // (dpus * GROUP))
    # Bytes of keys, of valid bits, and of the match lines of one query.
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
    """Return ternary queries, uint32 [M, 2]: the required bits under the mask, and the mask."""
    return columns(wanted & care, care)


def columns(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Stack two columns into queries as DPUs read them, uint32 [M, 2]."""
    return np.ascontiguousarray(np.stack([first, second], axis=1), np.uint32)


def merged(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge overlapping and adjacent ranges into disjoint ranges in ascending order.

    Args:
      low: int64 [M], inclusive lower bounds, M at least 1.
      high: int64 [M], inclusive upper bounds, each at least its `low`.

    Returns:
      Lower and upper bounds, two int64 [at most M].
    """
    order = np.argsort(low)
    low, reached = low[order], np.maximum.accumulate(high[order])
    starts = np.append(True, low[1:] > reached[:-1] + 1)
    ends = np.append(starts[1:], True)
    return low[starts], reached[ends]
