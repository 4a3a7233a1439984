"""Removal of a run's files from its folder."""

import shutil
from pathlib import Path

from accel_rl.cli import folders
from accel_rl.experiment import folder, sweep


def clear(directory: Path) -> None:
    """Remove the files that commands wrote for a run, except pictures.

    Raises:
      ValueError: if `sweep.json` is damaged.
      BlockingIOError: if another process trains in the folder.
    """
    if not directory.is_dir():
        return
    with folder.writing(directory):
        for group in sweep.read(directory) if sweep.is_sweep(directory) else ():
            inner = directory / group.name
            clear(inner)
            if inner.is_dir() and not any(inner.iterdir()):
                inner.rmdir()
        others = (folders.TABLE, folders.HISTORY, folders.DETAILS)
        plans = (folders.SPEC, folders.MAPPING, folders.PLAN, folders.RUN)
        for name in (sweep.SWEEP, *folder.FILES, *others, *plans):
            (directory / name).unlink(missing_ok=True)
        for name in folder.FOLDERS:
            shutil.rmtree(directory / name, ignore_errors=True)
