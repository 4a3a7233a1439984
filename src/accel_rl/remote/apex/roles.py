"""Start of a training's actors and learners, as child processes."""

import contextlib
import subprocess
import sys
from typing import Literal


def start_role(
    role: Literal["actor", "learner"], order: str, stdout: int | None = None
) -> subprocess.Popen[str]:
    """Start the process of an actor or a learner, which ends when its standard input is closed.

    Args:
      role: what to run.
      order: its orders, a line of JSON.
      stdout: of the process, as for `subprocess.Popen`.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "accel_rl.remote.apex.process", role],
        stdin=subprocess.PIPE,
        stdout=stdout,
        text=True,
        process_group=0,  # Ctrl-C reaches only this process, which ends its children
    )
    assert process.stdin is not None
    # Not on the command line, which every user can read. The pipe stays open: its end tells the
    # child that this process has ended, or that it is to stop.
    with contextlib.suppress(BrokenPipeError):  # it has ended already, as its exit code tells
        process.stdin.write(order + "\n")
        process.stdin.flush()
    return process
