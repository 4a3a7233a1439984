"""Making a folder free for another run."""

import shutil
from pathlib import Path

from accel_rl.cli import folders
from accel_rl.cli.training import folder, sweeping


def clear(directory: Path) -> None:
    """Removes what any command wrote of a run there, but for pictures, and nothing else.

    Raises:
      ValueError: if `sweep.json` is damaged.
      BlockingIOError: if a process trains there.
    """
    if not directory.is_dir():
        return
    with folder.writing(directory):
        for group in sweeping.read(directory) if sweeping.is_sweep(directory) else ():
            inner = directory / group.name
            clear(inner)
            if inner.is_dir() and not any(inner.iterdir()):
                inner.rmdir()
        others = (folders.TABLE, folders.HISTORY, folders.DETAILS)
        plans = (folders.SPEC, folders.MAPPING, folders.PLAN, folders.RUN)
        for name in (sweeping.SWEEP, *folder.FILES, *others, *plans):
            (directory / name).unlink(missing_ok=True)
        for name in folder.FOLDERS:
            shutil.rmtree(directory / name, ignore_errors=True)
