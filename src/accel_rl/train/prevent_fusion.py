"""Programs whose steps XLA compiles apart, so that every executor rounds alike."""

import dataclasses
from collections.abc import Callable, Sequence

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from accel_rl.replay import Replay
from accel_rl.train.program import Program
from accel_rl.types import Array, ArrayLike, PyTree


def prevent_fusion(program: Program) -> Program:
    """Return the same program with each step compiled as if it were alone.

    XLA fuses across the steps of a fused training, and a fused multiply-add on a CPU rounds once
    where two operations round twice. So `fused` and the pipelined executors, which compile each
    step apart, differ in the last bits, and after many updates in more. With fusion across steps
    prevented, they agree bit for bit on one kind of CPU, with the same lags. docs/pipelined.md says
    what it costs.

    Args:
      program: its buffer may be a replay port.
    """
    env, agent, buffer = program.env, program.agent, program.buffer

    def init(key: Array, **hyperparameters: ArrayLike) -> PyTree:
        # Ranges are checked where values are known, which they are not inside a jitted function.
        jax.eval_shape(lambda: agent.init(key, **hyperparameters))
        return _apart(agent.init)(key, **hyperparameters)

    if isinstance(buffer, Replay):
        buffer = buffer._replace(
            add=_apart(buffer.add, ["batch_major"]),
            sample=_apart(buffer.sample),
            update=_apart(buffer.update),
        )
    return dataclasses.replace(
        program,
        env=env._replace(reset=_apart(env.reset), step=_apart(env.step)),
        agent=agent._replace(
            init=init,
            act=_apart(agent.act, ["explore"]),
            learn=_apart(agent.learn),
            td_error=_apart(agent.td_error),
        ),
        buffer=buffer,
    )


def _apart(fn: Callable[..., PyTree], static: Sequence[str] = ()) -> Callable[..., PyTree]:
    compiled = jax.jit(fn, static_argnames=tuple(static))

    def call(*args: PyTree, **kwargs: object) -> PyTree:
        # XLA fuses within a called function, and inlines calls first unless it is told not to.
        with set_xla_metadata(inlineable="false"):
            return compiled(*args, **kwargs)

    return call
