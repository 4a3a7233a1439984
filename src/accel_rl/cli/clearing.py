"""Removal of a run's files from its folder."""

import shutil
from pathlib import Path

from accel_rl.experiment import folder
from accel_rl.io.run_folder import MANIFEST, read_manifest


def clear(directory: Path) -> None:
    """Remove the files that a run's manifest lists, then the manifest; pictures stay.

    Raises:
      ValueError: if the manifest is damaged.
      BlockingIOError: if another process trains in the folder.
    """
    if not (directory / MANIFEST).is_file():
        return
    with folder.writing(directory):
        manifest = read_manifest(directory)
        for name in manifest.files:
            path = directory / name
            if not name.endswith("/"):
                path.unlink(missing_ok=True)
            elif manifest.kind == "sweep":  # a group's folder, which has a manifest of its own
                clear(path)
                if path.is_dir() and not any(path.iterdir()):
                    path.rmdir()
            else:
                shutil.rmtree(path, ignore_errors=True)
        (directory / MANIFEST).unlink()
        shutil.rmtree(directory / folder.CHECKPOINTS, ignore_errors=True)  # made by the lock
