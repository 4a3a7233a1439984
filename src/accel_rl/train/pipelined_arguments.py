"""What the pipelined executor is given, checked."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.arguments import instance, whole
from accel_rl.replay import Replay
from accel_rl.train.actors import CACHED
from accel_rl.train.compiled import number_of_seeds
from accel_rl.train.placement import Placement
from accel_rl.train.ports import LocalPort
from accel_rl.train.program import Program
from accel_rl.train.schedule import segments
from accel_rl.train.split_port import SplitPort
from accel_rl.train.state import TrainState


def check_sizes(
    program: Program,
    deterministic: bool,
    queue_size: int | None,
    num_actors: int,
    actor_priorities: int,
    restarts: int,
) -> int:
    """The size of the queue; raises ValueError where numbers are out of range, or do not fit.

    Raises TypeError where a number is no int.
    """
    instance("program", program, Program, "train.make makes one")
    if deterministic and (queue_size is not None or num_actors != 1):
        raise ValueError(
            "queue_size and num_actors are for the asynchronous mode (deterministic=False), got "
            f"{queue_size} and {num_actors}: in deterministic mode the lags of the schedule say "
            "how far one actor is ahead"
        )
    if deterministic and not isinstance(program.memory, Replay) and program.memory.limited:
        raise ValueError(
            "the memory must not hold samples to inserts (samples_per_insert) in deterministic "
            "mode, whose schedule does that: both might wait for ever"
        )
    if deterministic and restarts > 0:
        raise ValueError(
            "restarts are for the asynchronous mode (deterministic=False), got "
            f"{restarts}: new episodes are not what the key says"
        )
    if num_actors == 0 and isinstance(program.memory, Replay):
        raise ValueError(
            "num_actors may be 0 only of a program whose memory is a port, to which others add"
        )
    size = max(1, program.schedule.policy_lag) if queue_size is None else queue_size
    for name, value, least in (
        ("queue_size", size, 1),
        ("num_actors", num_actors, 0),
        ("actor_priorities", actor_priorities, 0),
        ("restarts", restarts, 0),
    ):
        whole(name, value, least)
    if num_actors and program.schedule.num_envs % num_actors:
        raise ValueError(
            f"num_actors must divide num_envs, {program.schedule.num_envs}, got {num_actors}"
        )
    return size


def state_of(program: Program, start: Any, hyper: Mapping[str, Any] | None) -> TrainState:
    """From which training starts, of a key or a state; raises ValueError, TypeError of neither."""
    if isinstance(start, TrainState):
        if hyper:
            raise ValueError(f"hyper is the state's where training goes on from one, got {hyper}")
        return start
    if number_of_seeds(start) is not None:
        raise ValueError(f"start must be a single key, got {start.shape} of them")
    given = dict(hyper or {})
    jax.eval_shape(lambda: program.init(start, **given))  # which checks known values
    return _init(program)(start, given)


def port_of(program: Program, state: TrainState, placement: Placement) -> Any:
    """The memory, as a port on its device or devices."""
    memory, index, store = program.memory, placement.memory(), placement.storage()
    if not isinstance(memory, Replay):
        return memory
    if index == store:
        return LocalPort(memory, state=state.replay, device=index)
    return SplitPort(memory, state=state.replay, index_device=index, store_device=store)


def ends_of(program: Program, steps: int, period: int | None, first: int) -> list[int]:
    """The iteration after the last of each row that is still to come."""
    plan = segments(program.schedule, steps, period)
    ends = np.cumsum([iterations for iterations, _ in plan]).tolist()
    if ends[-1] <= first:
        done = first * program.schedule.steps
        raise ValueError(f"steps must be more than the {done} of the state, got {steps}")
    return [end for end in ends if end > first]


@functools.lru_cache(maxsize=CACHED)
def _init(program: Program) -> Callable[..., TrainState]:
    return jax.jit(lambda key, given: program.init(key, **given))
