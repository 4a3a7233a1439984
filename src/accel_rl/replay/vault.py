"""Disk vault: transitions in arrays on disk, for buffers and logs larger than memory.

Arrays are kept by tensorstore in Zarr 3 format, one for each field, [rows, num_envs, *field].
Files hold many chunks, which carry checksums. What an append wrote counts once `index.json` says
so, which is replaced last: a vault that was killed at any moment holds a prefix of what was
appended.
"""

import functools
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.arguments import whole
from accel_rl.io.atomic import atomic_write
from accel_rl.io.manifest import DamagedError, damage
from accel_rl.io.values import Json
from accel_rl.replay.replay import Replay, ReplayState
from accel_rl.replay.store import as_rows, describe
from accel_rl.replay.vault_files import check_fields, fields_of, locked, open_array
from accel_rl.types import PyTree

FORMAT, SCHEMA, INDEX = "accel_rl.vault", 1, "index.json"
_COUNTS = "rows", "written", "source"
_AT_ONCE = 1_024  # rows that `fill` adds to a buffer in a call


class Vault:
    """Transitions on disk, appended to and read back in any part.

    A row is one step of all environments, as in a replay buffer. One process appends at a time;
    any number read.

    Args:
      path: folder; made if absent.
      example: one item, a pytree of arrays; only shapes and dtypes matter. It must be that with
        which the vault was made.
      num_envs: environments in a row; None for items without that axis.
      metadata: JSON values to keep; those of a vault that exists stay unless given.
      read_only: take no lock and refuse to append.

    Attributes:
      rows: rows that the vault holds.
      metadata: JSON values.
    """

    def __init__(
        self,
        path: str | pathlib.Path,
        example: PyTree,
        *,
        num_envs: int | None = None,
        metadata: Mapping[str, Json] | None = None,
        read_only: bool = False,
    ):
        """Open the vault, or make one.

        Raises:
          ValueError: if it holds other items.
          BlockingIOError: if another process appends to it.
          FileNotFoundError: if it is to be read and is not there.
          DamagedError: if the folder holds something else, or lacks a part.
        """
        self._path, self._example, self._envs = pathlib.Path(path), describe(example), num_envs
        self._tree = jax.tree.structure(self._example)
        self._fields = fields_of(self._example)
        self._axes = (1 if num_envs is None else whole("num_envs", num_envs, 1),)
        self._lock: Any = None
        # Rows of the vault, of a buffer when it was last written, and of the vault then.
        self.rows = self._written = self._source = 0
        if not read_only:
            self._path.mkdir(parents=True, exist_ok=True)
            self._lock = locked(self._path)
        try:
            self._begin(metadata)
        except BaseException:
            self.close()
            raise

    @classmethod
    def of(cls, path: str | pathlib.Path, buffer: Replay, **options: Any) -> "Vault":
        """Open a vault for what a replay buffer stores; options are those of `Vault`."""
        store = buffer.parts[1]
        num_envs = store.ring.num_envs if store.has_env_axis else None
        return cls(path, store.example, num_envs=num_envs, **options)

    def append(self, transitions: PyTree) -> None:
        """Append leaves [num_envs, *leaf] of one step, or [steps, num_envs, *leaf]; durably.

        Append many steps at once: the last file of each array, a MiB, is written again each time.
        """
        items, steps = as_rows("transitions", self._example, transitions, self._envs)
        self._append(jax.tree.leaves(items), steps)

    def write(self, buffer: Replay, state: ReplayState) -> int:
        """Append the rows that a replay buffer got since it was last written; return how many.

        The buffer is the one that was written before, or filled from the vault. It may have been
        saved and restored in between.

        Raises:
          ValueError: if the buffer has overwritten rows that were not written, is another one, or
            holds other items.
        """
        cursor, leaves = state.store.cursor, jax.tree.leaves(state.store.data)
        store = buffer.parts[1]
        check_fields(self._fields, fields_of(store.example), "the buffer")
        envs, held = store.ring.num_envs, store.ring.rows
        if envs != self._axes[0]:
            raise ValueError(f"num_envs of the buffer must be {self._axes[0]}, got {envs}")
        row = int(cursor.row)
        total = int(cursor.laps) * held + row
        new = total - self._written
        if new < 0:
            raise ValueError(f"the buffer has {total} rows, fewer than the {self._written} written")
        if self._written and new < held:
            last = (self._written - 1) % held * envs
            self._check_same([np.asarray(leaf[last : last + envs]) for leaf in leaves])
        if new > held:
            raise ValueError(
                f"{(new - held) * envs} items were overwritten before they were written: write a "
                f"buffer of {held} rows at least as often as it is filled"
            )
        order = np.arange(row - new, row) % held
        parts = np.split(order, np.flatnonzero(np.diff(order) != 1) + 1) if new else []
        items = [
            np.concatenate([leaf[part[0] * envs : (part[-1] + 1) * envs] for part in parts])
            for leaf in leaves
            if new
        ]
        if new:
            self._append(items, new, total)
        return new

    def read(self, start: int = 0, stop: int | None = None) -> PyTree:
        """Read rows [start, stop) as NumPy arrays [rows, num_envs, *leaf]."""
        begin, end, _ = slice(start, stop).indices(self.rows)
        return self._gather(lambda array: array[begin : max(begin, end)])

    def batches(self, size: int) -> Iterator[PyTree]:
        """Yield all rows in order, `size` at a time; the last batch may have fewer."""
        whole("size", size, 1)
        for start in range(0, self.rows, size):
            yield self.read(start, start + size)

    def sample(self, rng: np.random.Generator, batch_size: int) -> PyTree:
        """Draw items uniformly with replacement, leaves [batch_size, *leaf], from the disk."""
        if not self.rows:
            raise ValueError("sample needs at least one row, got an empty vault")
        row = rng.integers(self.rows, size=whole("batch_size", batch_size, 1))
        env = rng.integers(self._axes[0], size=batch_size)
        return self._gather(lambda array: array.vindex[row, env], drawn=True)

    def fill(self, buffer: Replay, state: ReplayState) -> ReplayState:
        """Add the newest rows to an empty replay buffer, as many as it holds.

        `write` goes on from the state that is returned. The given state is donated.
        """
        ring = buffer.parts[1].ring
        add = jax.jit(functools.partial(buffer.add, batch_major=False), donate_argnums=0)
        size = min(_AT_ONCE, ring.rows - ring.reach + 1)
        for start in range(max(0, self.rows - ring.rows), self.rows, size):
            state = add(state, self.read(start, start + size))
        self._written, self._source = min(self.rows, ring.rows), self.rows
        return state

    def close(self) -> None:
        """Let others append."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> "Vault":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.rows

    def _begin(self, metadata: Mapping[str, Json] | None) -> None:
        exists = (self._path / INDEX).is_file()
        if not exists and self._lock is None:
            raise FileNotFoundError(f"{self._path} holds no vault")
        if not exists and any(not each.name.startswith(".") for each in self._path.iterdir()):
            raise DamagedError(f"{self._path} holds something that is no vault: no {INDEX}")
        kept: Mapping[str, Json] = {}
        if exists:
            index = self._read_index()
            self.rows, self._written, self._source = (index[name] for name in _COUNTS)
            kept = index["metadata"]
        self.metadata: dict[str, Json] = dict(kept if metadata is None else metadata)
        if not exists or (metadata is not None and self._lock is not None):
            self._commit()
        # Without rows, arrays are made anew: a process may have been killed while it made them.
        new = self.rows == 0 and self._lock is not None
        with damage(self._path):
            self._arrays = [
                open_array(self._path / f"{number:03d}", field, self._axes, new, not self._lock)
                for number, field in enumerate(self._fields)
            ]
        if self.rows:  # an append to a chunk that is missing would put zeros in place of its rows
            self.read(-1)

    def _append(self, items: list[Any], steps: int, written: int | None = None) -> None:
        if self._lock is None:
            raise ValueError("the vault is closed, or was opened with read_only=True")
        end = self.rows + steps
        pending = []
        for number, leaf in enumerate(items):
            values = np.asarray(leaf).reshape(steps, *self._axes, *leaf.shape[1:])
            array = self._arrays[number]
            if array.shape[0] < end:
                array = array.resize(exclusive_max=[end, *[None] * (array.ndim - 1)]).result()
                self._arrays[number] = array
            pending.append(array[self.rows : end].write(values))
        for each in pending:
            each.result()  # on disk: tensorstore flushes a file before it takes its name
        self.rows = end
        if written is not None:
            self._written, self._source = written, end
        self._commit()

    def _check_same(self, newest: list[np.ndarray]) -> None:
        """Raise ValueError unless a buffer's row is the last that was written from one."""
        kept = jax.tree.leaves(self.read(self._source - 1, self._source))
        for ours, theirs in zip(newest, kept, strict=True):
            if ours.tobytes() != np.asarray(theirs).tobytes():
                raise ValueError("the buffer is not the one that was written, or filled, before")

    def _gather(self, of: Any, *, drawn: bool = False) -> PyTree:
        with damage(self._path):
            leaves = [each.result() for each in [of(array).read() for array in self._arrays]]
        if self._envs is None and not drawn:
            leaves = [leaf[:, 0] for leaf in leaves]
        return jax.tree.unflatten(self._tree, leaves)

    def _read_index(self) -> dict[str, Any]:
        with damage(self._path / INDEX):
            index = json.loads((self._path / INDEX).read_text(encoding="utf-8"))
            kind = index["format"], index["schema"]
            fields, envs = index["fields"], index["num_envs"]
            [int(index[name]) for name in _COUNTS], dict(index["metadata"])
        if kind != (FORMAT, SCHEMA):
            raise DamagedError(f"{self._path} must be a vault of schema {SCHEMA}, got {kind}")
        if envs != self._envs:
            raise ValueError(f"num_envs must be {envs}, with which the vault was made")
        check_fields(fields, self._fields, "the example")
        return dict(index)

    def _commit(self) -> None:
        from accel_rl import __version__

        index = {
            "format": FORMAT,
            "schema": SCHEMA,
            "accel_rl": __version__,
            "rows": self.rows,
            "written": self._written,
            "source": self._source,
            "num_envs": self._envs,
            "fields": self._fields,
            "metadata": self.metadata,
        }
        with atomic_write(self._path / INDEX, "w") as file:
            json.dump(index, file, indent=1)
