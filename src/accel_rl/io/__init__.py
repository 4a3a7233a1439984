"""Atomic file writes, checkpoints and loggers."""

from accel_rl.io.atomic import atomic_write
from accel_rl.io.checkpoints import Checkpoint, Checkpoints
from accel_rl.io.files import Csv, JsonLines
from accel_rl.io.loggers import Console, Logger, ProgressBar
from accel_rl.io.manifest import DamagedError
from accel_rl.io.trackers import TensorBoard, WeightsAndBiases

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Console",
    "Csv",
    "DamagedError",
    "JsonLines",
    "Logger",
    "ProgressBar",
    "TensorBoard",
    "WeightsAndBiases",
    "atomic_write",
]
