"""Replay buffers with the constructors, methods and samples of flashbax 0.1.3.

Replace `import flashbax as fbx` by `from accel_rl.replay import flashbax as fbx`. Buffers are an
index and a store of this package: updates are in place, and sums of priorities do not drift.

Differences:

- Draws for a key are other items of the same distribution. Uniform samples are drawn
  independently, prioritised ones stratified, as in flashbax.
- New items get the largest priority ever set, at least 1. flashbax 0.1.3 rounds it down to an int.
- `set_priorities` skips items that cannot be sampled, such as sequences that the write head has
  reached since, and NaN, infinite or negative priorities. Priorities to the power of the exponent
  are clipped to [1e-28, 1e28].
- Outside of jit, invalid priorities and samples of a buffer without a complete item raise
  ValueError. Batches of other shapes or dtypes raise ValueError or TypeError, not AssertionError.
- States hold time-major arrays. `state.experience`, `current_index` and `is_full` are properties;
  `experience` is a transposed copy.
- A mixer takes its part of each sample at random; flashbax takes the first, which in a stratified
  sample are at the lowest indices.
- `device` is ignored: the default backend decides. `max_size` gives no warning.

The submodules of flashbax are not included, but their types are exported here. `replay.Vault` is
in place of `vault`.
"""

from accel_rl.replay.flashbax.buffers import (
    make_flat_buffer,
    make_item_buffer,
    make_prioritised_flat_buffer,
    make_prioritised_item_buffer,
    make_prioritised_trajectory_buffer,
    make_trajectory_buffer,
)
from accel_rl.replay.flashbax.containers import (
    ExperiencePair,
    PrioritisedTrajectoryBuffer,
    PrioritisedTrajectoryBufferSample,
    PrioritisedTrajectoryBufferState,
    PrioritisedTransitionSample,
    TrajectoryBuffer,
    TrajectoryBufferSample,
    TrajectoryBufferState,
    TransitionSample,
)
from accel_rl.replay.flashbax.mixer import Mixer, make_mixer
from accel_rl.replay.flashbax.queue import (
    TrajectoryQueue,
    TrajectoryQueueSample,
    TrajectoryQueueState,
    make_trajectory_queue,
)

__all__ = [
    "ExperiencePair",
    "Mixer",
    "PrioritisedTrajectoryBuffer",
    "PrioritisedTrajectoryBufferSample",
    "PrioritisedTrajectoryBufferState",
    "PrioritisedTransitionSample",
    "TrajectoryBuffer",
    "TrajectoryBufferSample",
    "TrajectoryBufferState",
    "TrajectoryQueue",
    "TrajectoryQueueSample",
    "TrajectoryQueueState",
    "TransitionSample",
    "make_flat_buffer",
    "make_item_buffer",
    "make_mixer",
    "make_prioritised_flat_buffer",
    "make_prioritised_item_buffer",
    "make_prioritised_trajectory_buffer",
    "make_trajectory_buffer",
    "make_trajectory_queue",
]
