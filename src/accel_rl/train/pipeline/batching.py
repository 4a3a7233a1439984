"""Groups of updates that the pipelined executors run in one call."""

import functools
import math

import jax

from accel_rl.replay import Replay
from accel_rl.train.pipeline.actors import CACHED
from accel_rl.train.program import Program

MOST_BYTES = 2**24  # of the batches sampled in one call


def prioritised(program: Program) -> bool:
    """Return whether sampling depends on priorities; assumed so for a replay port."""
    buffer = program.buffer
    return not isinstance(buffer, Replay) or buffer.parts[0].sampler.prioritised


@functools.lru_cache(maxsize=CACHED)
def group_size(program: Program) -> int:
    """Return the number of updates whose batches are sampled, and learned from, in one call.

    Without priorities no batch depends on what was learned from another, so the batches of an
    iteration are drawn together: the largest divisor of `updates` that stays below `MOST_BYTES`.
    """
    updates = program.schedule.updates
    if updates == 1 or prioritised(program):
        return 1
    replay = program.require_replay()
    batch = jax.eval_shape(lambda: replay.sample(replay.init(), jax.random.key(0), 1.0, 1.0).batch)
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(batch))
    divisors = (n for n in range(1, updates + 1) if updates % n == 0)
    return max((n for n in divisors if n * size <= MOST_BYTES), default=1)
