"""Training programs of pure steps, and what runs them."""

from accel_rl.train.actor import example
from accel_rl.train.evaluate import evaluator
from accel_rl.train.program import Program, TrainState, make
from accel_rl.train.schedule import Schedule, segments
from accel_rl.train.seeds import over_seeds
from accel_rl.train.whole import Result, whole

__all__ = [
    "Program",
    "Result",
    "Schedule",
    "TrainState",
    "evaluator",
    "example",
    "make",
    "over_seeds",
    "segments",
    "whole",
]
