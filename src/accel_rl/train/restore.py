"""The state that a checkpoint holds, to look at or to act with."""

import jax

from accel_rl.arguments import instance
from accel_rl.io import Checkpoint
from accel_rl.train.program import Program
from accel_rl.train.state import TrainState


def restore(program: Program, checkpoint: Checkpoint) -> TrainState:
    """A checkpoint's state, with a leading axis if it is of several seeds.

    Args:
      program: as the one that was trained.
      checkpoint: such as `io.Checkpoints(folder).newest()`, or `.highest()`.

    Raises:
      TypeError: if it is no program, or no checkpoint.
      ValueError: if the state is another program's; the message has the first leaf that differs.
    """
    instance("program", program, Program, "train.make makes one")
    instance("checkpoint", checkpoint, Checkpoint, "io.Checkpoints(folder).newest() gives one")
    seeds = checkpoint.about.get("training", {}).get("seeds")
    template = jax.eval_shape(program.init, jax.random.key(0))
    if seeds is not None:
        template = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((seeds, *leaf.shape), leaf.dtype), template
        )
    return checkpoint.state(template)
