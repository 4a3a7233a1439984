"""Training programs of pure steps, and what runs them."""

from accel_rl.train.apex import ape_x_exploration
from accel_rl.train.chunked import Outcome, chunked
from accel_rl.train.collection import example
from accel_rl.train.compiled import Evaluation
from accel_rl.train.evaluate import evaluator
from accel_rl.train.fence import fenced
from accel_rl.train.pipelined import Pipelined, pipelined
from accel_rl.train.placement import Placement
from accel_rl.train.ports import LocalPort
from accel_rl.train.program import Program, make
from accel_rl.train.restore import restore
from accel_rl.train.schedule import Schedule, segments
from accel_rl.train.seeds import over_seeds
from accel_rl.train.split_port import SplitPort
from accel_rl.train.standalone_actor import Acted, act
from accel_rl.train.state import TrainState
from accel_rl.train.stopping import first_of, plateau, stop_at
from accel_rl.train.whole import Result, whole

__all__ = [
    "Acted",
    "Evaluation",
    "LocalPort",
    "Outcome",
    "Pipelined",
    "Placement",
    "Program",
    "Result",
    "Schedule",
    "SplitPort",
    "TrainState",
    "act",
    "ape_x_exploration",
    "chunked",
    "evaluator",
    "example",
    "fenced",
    "first_of",
    "make",
    "over_seeds",
    "pipelined",
    "plateau",
    "restore",
    "segments",
    "stop_at",
    "whole",
]
