"""Schema of a replay table: its columns, limiter, and the mapping from pytrees to columns."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_rl.arguments import integer, one_of, real, whole, within
from accel_rl.types import PyTree

DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
SAMPLERS = ("uniform", "prioritised", "amper_fr")
MOST_COLUMNS, MOST_NAME_BYTES = 255, 255


@dataclasses.dataclass(frozen=True)
class Column:
    """Column of a table: a part of each item, of one dtype and shape."""

    name: str
    dtype: str  # NumPy type code without byte order, one of DTYPES
    shape: tuple[int, ...] = ()  # of one item

    def __post_init__(self) -> None:
        """Check what the wire format cannot hold."""
        _check_name(self.name)
        one_of("dtype", self.dtype, DTYPES)
        shape = tuple(whole("each of shape", size, 0) for size in self.shape)
        object.__setattr__(self, "shape", shape)

    @property
    def numpy_dtype(self) -> np.dtype:
        """Dtype of the arrays, little-endian."""
        return np.dtype("<" + self.dtype)

    @property
    def item_bytes(self) -> int:
        """Bytes of the column in one item."""
        return math.prod(self.shape) * self.numpy_dtype.itemsize


@dataclasses.dataclass(frozen=True)
class Limiter:
    """Rate limiter of a table: the condition under which pushes and samples wait.

    inserts * samples_per_insert - samples, in items, stays from min_diff to max_diff. If
    `samples_per_insert` is None, only `min_size` applies.
    """

    min_size: int = 1  # items required before sampling
    samples_per_insert: float | None = None
    min_diff: float = 0.0
    max_diff: float = 0.0

    def __post_init__(self) -> None:
        """Raise TypeError if a number is of another type; the server checks ranges."""
        integer("min_size", self.min_size)
        for name in ("samples_per_insert", "min_diff", "max_diff"):
            if getattr(self, name) is not None or name != "samples_per_insert":
                real(name, getattr(self, name))


def limiter_around(
    least: int, batch_size: int, samples_per_insert: float | None, slack: float | None
) -> Limiter:
    """Return a limiter as in Reverb, centred on the exact ratio of samples to inserts.

    Args:
      least: items required before sampling.
      batch_size: items of a sample.
      samples_per_insert: samples per inserted item; None: only `least` limits sampling.
      slack: allowed deviation of inserts * samples_per_insert - samples, either way, at least a
        batch and samples_per_insert; None: two batches, times samples_per_insert if that is above
        1.
    """
    if samples_per_insert is None:
        if slack is not None:
            raise ValueError("slack is for a table with samples_per_insert")
        return Limiter(min_size=least)
    within("samples_per_insert", samples_per_insert, "(0, inf)")
    slack = 2.0 * batch_size * max(1.0, samples_per_insert) if slack is None else slack
    within("slack", slack, f"[{max(batch_size, samples_per_insert)}, inf)")
    # Sampling starts at `least` inserts and 0 samples: that difference is the centre, as if the
    # samples that those inserts allow had been drawn already.
    start = least * samples_per_insert
    return Limiter(least, samples_per_insert, start - slack, start + slack)


@dataclasses.dataclass(frozen=True)
class TableSpec:
    """Specification of a table: name, capacity, columns, sampler and limiter."""

    name: str
    capacity: int  # items
    columns: tuple[Column, ...]
    sampler: str = "prioritised"  # one of SAMPLERS
    priority_exponent: float = 0.6  # alpha
    limiter: Limiter = Limiter()
    groups: int = 20  # of amper_fr
    csp_ratio: float = 0.15  # of amper_fr: target size of the candidate set / size of the table
    max_priority: float = math.inf  # priorities above it count as it

    def __post_init__(self) -> None:
        """Check what the wire format cannot hold; the server checks the rest."""
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"columns must have names of their own, got {twice[0]!r} twice")
        for name in ("priority_exponent", "csp_ratio", "max_priority"):
            real(name, getattr(self, name))
        integer("groups", self.groups)
        # Rounded to float32, as on the wire, so that specs compare equal to the server's.
        for field in ("priority_exponent", "csp_ratio", "max_priority"):
            object.__setattr__(self, field, float(np.float32(getattr(self, field))))
        one_of("sampler", self.sampler, SAMPLERS)
        whole("capacity", self.capacity, 1, 2**32 - 1)
        whole("number of columns", len(self.columns), 1, MOST_COLUMNS)
        _check_name(self.name)


def _check_name(name: str) -> None:
    if not 0 < len(name.encode()) <= MOST_NAME_BYTES:
        raise ValueError(f"name must have 1 to {MOST_NAME_BYTES} bytes, got {name!r}")


def differences(wanted: TableSpec, there: TableSpec) -> str:
    """Return a message with each field in which two tables differ, and both values."""
    found = []
    for field in dataclasses.fields(TableSpec):
        ours, theirs = getattr(wanted, field.name), getattr(there, field.name)
        if ours != theirs:
            found.append(f"{field.name} is {theirs}, wanted {ours}")
    return "; ".join(found)


class TreeColumns:
    """Conversion between a pytree and columns, one for each leaf.

    Columns are named by the path of the leaf, such as `observation` or `action['left']`.
    """

    def __init__(self, example: PyTree) -> None:
        """Take names, shapes and dtypes from one item: arrays, or anything with both."""
        import jax  # imported here, as a server process does not need it

        self._structure: Any
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(example)
        found = []
        for path, leaf in leaves:
            name = jax.tree_util.keystr(path).lstrip(".") or "item"
            dtype = np.dtype(getattr(leaf, "dtype", None) or np.asarray(leaf).dtype)
            code = "b1" if dtype == np.bool_ else dtype.str[1:]
            found.append(Column(name, code, tuple(np.shape(leaf))))
        self.columns: tuple[Column, ...] = tuple(found)

    def flatten(self, items: PyTree) -> list[np.ndarray]:
        """Return the columns [n, ...] of a pytree with leaves [n, ...]."""
        import jax

        leaves, structure = jax.tree_util.tree_flatten(items)
        if structure != self._structure:
            raise ValueError(f"items must be {self._structure}, got {structure}")
        return [np.asarray(leaf) for leaf in leaves]

    def unflatten(self, columns: Sequence[Any]) -> Any:
        """Return the pytree with these leaves, in the order of `columns`."""
        import jax

        return jax.tree_util.tree_unflatten(self._structure, columns)
