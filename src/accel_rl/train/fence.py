"""Programs whose steps XLA may not fuse with one another, so that all executors round alike."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

from accel_rl.arguments import instance
from accel_rl.replay import Replay
from accel_rl.train.program import Program
from accel_rl.types import Array, ArrayLike


def fenced(program: Program) -> Program:
    """The same program, with each step compiled as if it were alone.

    A compiler that has a whole training before it fuses across steps, and where a product and a sum
    meet in one loop a CPU rounds once instead of twice. So `whole` and `pipelined`, which compiles
    steps apart, differ in last bits, and after many updates in more. Of a fenced program they agree
    bit for bit on one kind of CPU, with the same lags. Its cost to `whole` depends on the program:
    see docs/pipelined.md.

    Args:
      program: its memory may be a port.

    Raises:
      TypeError: if it is no program.
    """
    instance("program", program, Program, "train.make makes one")
    env, agent, memory = program.env, program.agent, program.memory

    def init(key: Array, **hyperparameters: ArrayLike) -> Any:
        jax.eval_shape(lambda: agent.init(key, **hyperparameters))  # which checks known values
        return _apart(agent.init)(key, **hyperparameters)

    if isinstance(memory, Replay):
        memory = memory._replace(
            add=_apart(memory.add), sample=_apart(memory.sample), update=_apart(memory.update)
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
        memory=memory,
    )


def _apart(fn: Callable[..., Any], static: Sequence[str] = ()) -> Callable[..., Any]:
    compiled = jax.jit(fn, static_argnames=tuple(static))

    def call(*args: Any, **kwargs: Any) -> Any:
        with set_xla_metadata(inlineable="false"):
            return compiled(*args, **kwargs)

    return call
