"""Loggers for TensorBoard and Weights & Biases."""

import importlib
import os
import pathlib
import uuid
from collections.abc import Sequence
from typing import Any

from accel_rl.io.atomic import atomic_write
from accel_rl.io.loggers import Row, scalars


class TensorBoard:
    """Logger for TensorBoard event files; needs tensorboardX."""

    def __init__(self, folder: str | os.PathLike[str]):
        """Set the folder of the event files."""
        self._module = _extra("tensorboardX", "tensorboard")
        self._folder = pathlib.Path(folder)
        self._writer: Any = None

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Open a new event file; TensorBoard hides later steps of earlier event files."""
        earlier = list(self._folder.glob("events.out.tfevents.*"))
        if rows is None and earlier:
            raise FileExistsError(f"{self._folder} holds the log of another training")
        next_step = rows[-1]["steps"] + 1 if rows else 0
        self._writer = self._module.SummaryWriter(
            str(self._folder),
            purge_step=next_step if earlier else None,
            # By default names differ only by the second, and two runs could share a file.
            filename_suffix=f".{len(earlier):04d}",
        )

    def log(self, row: Row) -> None:
        """Write the finite metrics of a row."""
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, row["steps"])
        self._writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases:
    """Logger for a Weights & Biases run; needs wandb."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, **init: object):
        """Set the arguments of `wandb.init`.

        To resume, wandb needs the run's `id`: one of the arguments, or kept in `folder`.
        """
        self._module = _extra("wandb", "wandb")
        self._id_file = None if folder is None else pathlib.Path(folder) / "id"
        self._init = init
        self._run: Any = None

    def begin(self, rows: Sequence[Row] | None) -> None:
        """Start or resume the run."""
        if self._id_file is not None:
            self._init["id"] = _kept_id(self._id_file, new=rows is None)
        if rows is not None and "id" not in self._init:
            raise ValueError("id must be given, so that the run can be found to go on with it")
        self._run = self._module.init(resume="never" if rows is None else "allow", **self._init)

    def log(self, row: Row) -> None:
        """Send the finite metrics of a row.

        Rows that the run already has, from before training was resumed, are skipped: they are
        identical, and wandb would refuse them.
        """
        if row["steps"] >= self._run.step:
            self._run.log(scalars(row), step=row["steps"])

    def close(self) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()


def _kept_id(path: pathlib.Path, *, new: bool) -> str:
    if new or not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "w") as file:
            file.write(uuid.uuid4().hex)
    return path.read_text(encoding="utf-8")


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{module} is not installed: pip install 'accel-rl[{extra}]'", name=module
        ) from error
