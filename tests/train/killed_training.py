"""A training that goes on where it stands, and is killed: python killed_training.py FOLDER ROWS S.

It is killed S seconds after it has logged a number of rows; never if that is 0.
"""

import os
import pathlib
import signal
import sys
import threading
import warnings

import tiny_training

from accel_rl import io, train

STEPS, PERIOD = 3000, 100


class Killer(tiny_training.Kept):
    def __init__(self, rows, seconds):
        super().__init__()
        self.left, self.seconds = rows, seconds

    def log(self, row):
        self.left -= 1
        if self.left == 0:
            threading.Timer(self.seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def go(folder, rows=0, seconds=0.0, **arguments):
    folder = pathlib.Path(folder)
    return train.run(
        tiny_training.program(),
        tiny_training.key(),
        STEPS,
        period=PERIOD,
        hyper=tiny_training.HYPER,
        evaluation=train.Evaluation(5, 500, 100),
        loggers=[io.JsonLines(folder / "log.jsonl"), Killer(rows, seconds)],
        checkpoints=io.Checkpoints(folder / "checkpoints", every=150),
        **arguments,
    )


if __name__ == "__main__":
    warnings.simplefilter("error")  # of damaged checkpoints, too
    go(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), resume=True)
