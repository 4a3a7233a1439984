"""Training programs of pure steps, and the executors that run them."""

from accel_rl.train.checkpoint_metadata import restore
from accel_rl.train.collection import example
from accel_rl.train.evaluate import Evaluation, evaluator
from accel_rl.train.fused import FusedResult, RunResult, fused, run
from accel_rl.train.host_evaluate import host_evaluator
from accel_rl.train.pipeline.buffer_ports import LocalPort, SplitPort
from accel_rl.train.pipeline.executor import PipelineResult, pipelined
from accel_rl.train.pipeline.placement import Placement
from accel_rl.train.pipeline.standalone_actor import ActorProgress, act
from accel_rl.train.prevent_fusion import prevent_fusion
from accel_rl.train.program import Program, make
from accel_rl.train.record import Episode, host_record, record
from accel_rl.train.schedule import Schedule, segments
from accel_rl.train.seeds import over_seeds
from accel_rl.train.state import TrainState
from accel_rl.train.stopping import first_of, plateau, stop_at, stop_excess

__all__ = [
    "ActorProgress",
    "Episode",
    "Evaluation",
    "FusedResult",
    "LocalPort",
    "PipelineResult",
    "Placement",
    "Program",
    "RunResult",
    "Schedule",
    "SplitPort",
    "TrainState",
    "act",
    "evaluator",
    "example",
    "first_of",
    "fused",
    "host_evaluator",
    "host_record",
    "make",
    "over_seeds",
    "pipelined",
    "plateau",
    "prevent_fusion",
    "record",
    "restore",
    "run",
    "segments",
    "stop_at",
    "stop_excess",
]
