"""Programs whose steps XLA compiles apart, so that every executor rounds alike."""

import dataclasses

import jax

from accel_rl.control_flow import compiled_apart
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
        return compiled_apart(agent.init)(key, **hyperparameters)

    if isinstance(buffer, Replay):
        buffer = buffer._replace(
            add=compiled_apart(buffer.add, ["batch_major"]),
            sample=compiled_apart(buffer.sample),
            update=compiled_apart(buffer.update),
        )
    return dataclasses.replace(
        program,
        env=env._replace(reset=compiled_apart(env.reset), step=compiled_apart(env.step)),
        agent=agent._replace(
            init=init,
            act=compiled_apart(agent.act, ["explore"]),
            learn=compiled_apart(agent.learn),
            td_error=compiled_apart(agent.td_error),
        ),
        buffer=buffer,
    )
