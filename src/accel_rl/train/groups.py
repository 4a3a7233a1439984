"""Updates that the pipelined executor takes in one call, where nothing need come between them."""

import functools
import math

import jax

from accel_rl.replay import Replay
from accel_rl.train.actors import CACHED
from accel_rl.train.program import Program

MOST_BYTES = 2**24  # of batches that are sampled in one call


def prioritised(program: Program) -> bool:
    """Whether what is sampled depends on priorities; a memory outside the program may."""
    memory = program.memory
    return not isinstance(memory, Replay) or memory.parts[0].sampler.prioritised


@functools.lru_cache(maxsize=CACHED)
def group_size(program: Program) -> int:
    """Updates whose batches are sampled in one call, and learned from in one.

    Of a memory without priorities no batch depends on what was learned from another, so all of an
    iteration's are drawn at once: as many as divide them, and together stay below `MOST_BYTES`.
    """
    updates = program.schedule.updates
    if updates == 1 or prioritised(program):
        return 1
    replay = program.require_replay()
    batch = jax.eval_shape(lambda: replay.sample(replay.init(), jax.random.key(0), 1.0, 1.0).batch)
    size = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(batch))
    divisors = (n for n in range(1, updates + 1) if updates % n == 0)
    return max((n for n in divisors if n * size <= MOST_BYTES), default=1)
