"""The fused executor: a whole training as one pure function, for `jit` and `vmap`."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.train.program import Program
from accel_rl.train.schedule import segments
from accel_rl.train.state import TrainState
from accel_rl.types import Array, ArrayLike, PyTree


class FusedResult(NamedTuple):
    """Final state and metrics of a fused training; a pytree."""

    state: TrainState
    metrics: dict[str, Array]  # leaves [N], one entry for each segment


def fused(program: Program, steps: int, *, period: int | None = None) -> Callable[..., FusedResult]:
    """Make a pure function from a PRNG key and hyper-parameters to the trained state.

    Args:
      program: its buffer must be a `Replay`.
      steps: environment steps, over all environments.
      period: environment steps between two entries of the metrics; `steps` / 100 if None.

    Returns:
      run(key, **hyper-parameters of `Program.init`) -> FusedResult.

    Raises:
      TypeError: if it is no program, a number no int, or the buffer a replay port.
    """
    program.require_replay()
    plan = segments(program.schedule, steps, period)

    def run(key: Array, **hyperparameters: PyTree) -> FusedResult:
        state = program.init(key, **hyperparameters)
        metrics = []
        for learning in (False, True):
            lengths = np.array([n for n, learns in plan if learns == learning], np.int32)
            if lengths.size:

                def body(state: TrainState, length: ArrayLike, learning: bool = learning) -> PyTree:
                    return program.segment(state, length, learning)

                state, measured = jax.lax.scan(body, state, lengths)
                metrics.append(measured)
        return FusedResult(state, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *metrics))

    return run
