"""Arguments of the pipelined executors: checks, initial state, buffer port, row boundaries."""

import functools
from collections.abc import Callable, Mapping

import jax
import numpy as np

from accel_rl.arguments import instance, one_of, whole
from accel_rl.replay import Replay
from accel_rl.train.compiled import number_of_seeds
from accel_rl.train.pipeline.actors import CACHED
from accel_rl.train.pipeline.buffer_ports import LocalPort
from accel_rl.train.pipeline.placement import Placement
from accel_rl.train.pipeline.split_buffer_port import SplitPort
from accel_rl.train.program import Program
from accel_rl.train.schedule import segments
from accel_rl.train.state import TrainState
from accel_rl.types import PyTree

EXECUTORS = ("deterministic", "asynchronous")


def check_sizes(
    program: Program,
    executor: str,
    queue_size: int | None,
    num_actors: int,
    actor_priorities: int,
    restarts: int,
) -> int:
    """Check sizes that depend on each other; return the queue size.

    Raises:
      ValueError: if a number is out of range, or not for this executor or program.
    """
    instance("program", program, Program, "train.make makes one")
    one_of("executor", executor, EXECUTORS)
    deterministic = executor == "deterministic"
    if deterministic and (queue_size is not None or num_actors != 1):
        raise ValueError(
            "queue_size and num_actors are for the asynchronous executor, got "
            f"{queue_size} and {num_actors}: in the deterministic one, the schedule's lags set how "
            "far its one actor is ahead"
        )
    if deterministic and not isinstance(program.buffer, Replay) and program.buffer.limited:
        raise ValueError(
            "the buffer must not limit samples per insert (samples_per_insert) with the "
            "deterministic executor, whose schedule does that: both could wait for ever"
        )
    if deterministic and restarts > 0:
        raise ValueError(
            "restarts are for the asynchronous executor, got "
            f"{restarts}: new episodes would not depend on the key alone"
        )
    if num_actors == 0 and isinstance(program.buffer, Replay):
        raise ValueError(
            "num_actors may be 0 only for a program whose buffer is a port, to which others add"
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


def initial_state(
    program: Program, start: PyTree, hyper: Mapping[str, PyTree] | None
) -> TrainState:
    """Return `start` if it is a state, else initialise one from a key.

    Raises:
      ValueError: if hyper-parameters are given with a state, or there are several keys.
    """
    if isinstance(start, TrainState):
        if hyper:
            raise ValueError(f"hyper must be None where start is a state, got {hyper}")
        return start
    if number_of_seeds(start) is not None:
        raise ValueError(f"start must be a single key, got {start.shape} of them")
    given = dict(hyper or {})
    jax.eval_shape(lambda: program.init(start, **given))  # checks ranges, of known values
    return _init(program)(start, given)


def port_of(program: Program, state: TrainState, placement: Placement) -> PyTree:
    """Return the buffer as a port on its device or devices."""
    buffer, index, store = program.buffer, placement.index(), placement.storage()
    if not isinstance(buffer, Replay):
        return buffer
    if index == store:
        return LocalPort(buffer, state=state.replay, device=index)
    return SplitPort(buffer, state=state.replay, index_device=index, store_device=store)


def ends_of(program: Program, steps: int, period: int | None, first: int) -> list[int]:
    """Return, for each row still to come, one past its last iteration."""
    plan = segments(program.schedule, steps, period)
    ends = np.cumsum([iterations for iterations, _ in plan]).tolist()
    if ends[-1] <= first:
        done = first * program.schedule.steps
        raise ValueError(f"steps must be more than the {done} of the state, got {steps}")
    return [end for end in ends if end > first]


@functools.lru_cache(maxsize=CACHED)
def _init(program: Program) -> Callable[..., TrainState]:
    return jax.jit(lambda key, given: program.init(key, **given))
