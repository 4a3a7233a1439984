"""Checkpoints in a folder, written atomically and verified when read."""

import contextlib
import dataclasses
import datetime
import importlib
import json
import logging
import math
import os
import pathlib
import secrets
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel_rl.arguments import whole
from accel_rl.io.atomic import sync_directory
from accel_rl.io.locks import lock_file
from accel_rl.io.loggers import Row
from accel_rl.io.manifest import DamagedError, check_manifest, damage, write_manifest
from accel_rl.io.values import Json

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Checkpoint whose files match their checksums."""

    path: pathlib.Path
    about: dict[str, Json]  # checkpoint metadata
    rows: list[Row]  # the log so far

    @property
    def step(self) -> int:
        """Environment steps taken so far."""
        return int(self.path.name)

    def state(self, template: object) -> Any:
        """Read the state.

        Args:
          template: a pytree of jax.ShapeDtypeStruct, with shardings where they matter.

        Raises:
          ValueError: if the template is another program's; the message names the first leaf that
            differs.
          DamagedError: if Orbax cannot read the state.
        """
        from accel_rl.io.leaves import from_host  # late: it imports JAX

        try:
            with _orbax() as orbax:
                arrays = orbax.restore((self.path / "state").absolute())
        except Exception as error:
            raise DamagedError(f"{self.path}: {error}") from error
        try:
            return from_host(arrays, template)
        except ValueError as error:
            raise ValueError(f"{self.path} is of another program: {error}") from error


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Folder of the checkpoints of one training run.

    One process at a time writes to the folder, inside `writing`.
    """

    folder: str | os.PathLike[str]
    every: int | None = None  # environment steps between two; None: only when training stops
    keep: int = 2  # newest checkpoints to keep
    best: str | None = None  # metric of the rows; also save and keep the checkpoint of its maximum

    def __post_init__(self) -> None:
        """Raise TypeError for an argument of another type, ValueError for a number below 1."""
        os.fspath(self.folder)
        for name in ("every", "keep"):
            value = getattr(self, name)
            if value is not None or name == "keep":
                whole(name, value, 1)

    def due(self, rows: Sequence[Row]) -> bool:
        """Return whether a checkpoint is due after the last row.

        It depends on the rows alone, so resumed and uninterrupted runs have the same checkpoints.
        """
        if self.every is not None:
            before = rows[-2]["steps"] if len(rows) > 1 else 0
            if rows[-1]["steps"] // self.every > before // self.every:
                return True
        if self.best is None:
            return False
        if self.best not in rows[-1]:
            raise ValueError(
                f"best must be an entry of the rows, {', '.join(rows[-1])}, got {self.best!r}"
            )
        score = _score(rows[-1], self.best)
        return score is not None and all(
            earlier is None or score > earlier
            for earlier in (_score(row, self.best) for row in rows[:-1])
        )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the folder for this process, and remove drafts that a killed process left.

        Raises:
          BlockingIOError: if another process holds the lock.
        """
        folder = pathlib.Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                lock_file(lock)
            except BlockingIOError:
                raise BlockingIOError(f"another process trains in {folder}") from None
            for draft in folder.glob(".[0-9]*.tmp"):
                shutil.rmtree(draft)
            yield

    def save(self, state: object, about: Mapping[str, Json], rows: Sequence[Row]) -> pathlib.Path:
        """Write the state after the last row, then remove checkpoints that need not be kept.

        The state's buffers may be donated once this returns.

        Args:
          state: a pytree of arrays.
          about: checkpoint metadata, JSON-serialisable.
          rows: the log so far, JSON-serialisable; the last row's `steps` names the checkpoint.

        Returns:
          The folder of the new checkpoint.
        """
        from accel_rl.io.leaves import to_host  # late: it imports JAX

        folder = pathlib.Path(self.folder)
        step = int(rows[-1]["steps"])
        about = {
            "format": FORMAT,
            "step": step,
            "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "score": None if self.best is None else {self.best: _score(rows[-1], self.best)},
            **about,
        }
        name = f"{step:012d}"
        draft = _hidden(folder, name)
        try:
            draft.mkdir()
            _save_arrays(draft / "state", to_host(state))
            for file, value in (("about.json", about), ("rows.json", list(rows))):
                (draft / file).write_text(json.dumps(value), encoding="utf-8")
            write_manifest(draft)
            if (folder / name).exists():  # damaged, or training would have resumed after it
                _discard(folder / name)
            draft.rename(folder / name)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_directory(os.fspath(folder))
        self._prune(step)
        return folder / name

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints, damaged or not, in ascending order."""
        return sorted(
            int(path.name)
            for path in pathlib.Path(self.folder).glob("[0-9]*")
            if path.name.isdecimal() and path.name == f"{int(path.name):012d}"
        )

    def open(self, step: int) -> Checkpoint:
        """Open and verify a checkpoint.

        Raises:
          DamagedError: if it is damaged or missing.
          ValueError: if its format is of another version.
          OSError: if it cannot be read for another reason, such as permissions or a network.
        """
        path = pathlib.Path(self.folder) / f"{step:012d}"
        with damage(path):
            check_manifest(path)
            about, rows = (
                json.loads((path / name).read_text(encoding="utf-8"))
                for name in ("about.json", "rows.json")
            )
        if about.get("format") != FORMAT:
            raise ValueError(f"{path}: format {about.get('format')}, this version reads {FORMAT}")
        return Checkpoint(path, about, rows)

    def newest(self) -> Checkpoint | None:
        """Open the newest complete checkpoint; warn if newer ones are damaged.

        Returns:
          The checkpoint, or None if there are none.

        Raises:
          DamagedError: if all are damaged.
          ValueError, OSError: as for `open`; older checkpoints are then not tried.
        """
        return self._first(self.steps()[::-1])

    def highest(self) -> Checkpoint | None:
        """Open the complete checkpoint with the highest `best`; otherwise as `newest`."""
        scores = {step: score for step in self.steps() if (score := self._score(step)) is not None}
        return self._first(sorted(scores, key=lambda step: (-scores[step], step)))

    def _first(self, steps: Sequence[int]) -> Checkpoint | None:
        damages = []
        for step in steps:
            try:
                found = self.open(step)
            except DamagedError as error:
                damages.append(str(error))
                continue
            if damages:
                warnings.warn(f"damaged: {'; '.join(damages)}. {found.path} is used", stacklevel=3)
            return found
        if damages:
            raise DamagedError(f"no checkpoint is whole: {'; '.join(damages)}")
        return None

    def _score(self, step: int) -> float | None:
        """Read the score that a checkpoint recorded; None if there is none."""
        path = pathlib.Path(self.folder) / f"{step:012d}" / "about.json"
        try:
            return json.loads(path.read_text(encoding="utf-8"))["score"][self.best]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _prune(self, newest: int) -> None:
        """Remove checkpoints that need not be kept, and damaged ones of later steps."""
        steps = self.steps()
        kept = {step for step in steps if step <= newest}
        kept = set(sorted(kept)[-self.keep :])
        scores = {step: self._score(step) for step in steps if step <= newest}
        known = {step: score for step, score in scores.items() if score is not None}
        if known:
            kept.add(max(known, key=lambda step: (known[step], -step)))
        for step in steps:
            if step not in kept:
                _discard(pathlib.Path(self.folder) / f"{step:012d}")


def _score(row: Row, name: str) -> float | None:
    value = row.get(name)
    return None if value is None or math.isnan(value) else value


def _hidden(folder: pathlib.Path, name: str) -> pathlib.Path:
    return folder / f".{name}.{secrets.token_hex(8)}.tmp"


def _discard(path: pathlib.Path) -> None:
    """Remove a folder atomically: rename it to a hidden name, then delete its files."""
    hidden = _hidden(path.parent, path.name)
    path.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


@contextlib.contextmanager
def _orbax() -> Iterator[Any]:
    """Open Orbax's checkpointer with its logging disabled; errors are raised anyway."""
    ocp: Any = importlib.import_module("orbax.checkpoint")  # late: the import is slow

    logger = logging.getLogger("absl")
    before, logger.disabled = logger.disabled, True
    try:
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as orbax:
            yield orbax
    finally:
        logger.disabled = before


def _save_arrays(path: pathlib.Path, arrays: Mapping[str, Json]) -> None:
    present = {name: array for name, array in arrays.items() if array.size}  # no empty arrays
    try:
        with _orbax() as orbax:
            orbax.save(path.absolute(), present)
    except ValueError as error:
        if "os_error_code" not in str(error):
            raise
        raise OSError(str(error)) from error  # TensorStore reports a full disk as ValueError
