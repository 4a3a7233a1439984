"""The whole training as one pure function, for jit, and for vmap over seeds and rates."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import instance
from accel_rl.train.program import Program
from accel_rl.train.schedule import segments
from accel_rl.train.state import TrainState
from accel_rl.types import Array, ArrayLike


class Result(NamedTuple):
    """What a training ends with."""

    state: TrainState
    metrics: dict[str, Array]  # leaves [N], one for each segment


def whole(program: Program, steps: int, *, period: int | None = None) -> Callable[..., Result]:
    """A function from a key, and hyper-parameters as of `Program.init`, to the trained state.

    Args:
      program: what to run; its memory must be part of it.
      steps: environment steps, over all environments.
      period: environment steps between two rows of metrics; a hundredth of `steps` if None.

    Returns:
      run(key, **hyper-parameters) -> Result.

    Raises:
      ValueError: if a number is out of range.
      TypeError: if it is no program, a number no int, or the memory a replay port.
    """
    instance("program", program, Program, "train.make makes one")
    program.require_replay()
    plan = segments(program.schedule, steps, period)

    def run(key: Array, **hyperparameters: Any) -> Result:
        state = program.init(key, **hyperparameters)
        rows = []
        for learning in (False, True):
            lengths = np.array([n for n, learns in plan if learns == learning], np.int32)
            if lengths.size:

                def body(state: TrainState, length: ArrayLike, learning: bool = learning) -> Any:
                    return program.segment(state, length, learning)

                state, metrics = jax.lax.scan(body, state, lengths)
                rows.append(metrics)
        return Result(state, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows))

    return run
