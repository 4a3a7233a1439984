"""Removal of a run's files from its folder."""

import shutil
from pathlib import Path

from accel_rl.experiment import folder
from accel_rl.io.run_folder import MANIFEST, kind_of, read_manifest


def clear(directory: Path) -> None:
    """Remove the files that a run's manifest lists, then the manifest; pictures stay.

    Raises:
      ValueError: if the manifest is damaged.
      BlockingIOError: if another process trains in the folder.
    """
    if kind_of(directory) is None:
        return
    with folder.writing(directory):
        for name in read_manifest(directory).files:
            path = directory / name
            if kind_of(path) is not None:  # a group of a sweep
                clear(path)
                if not any(path.iterdir()):
                    path.rmdir()
            elif name.endswith("/"):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        (directory / MANIFEST).unlink()
    shutil.rmtree(directory / folder.CHECKPOINTS, ignore_errors=True)  # made by the lock
