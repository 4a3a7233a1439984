"""An actor by itself: acts with what a learner elsewhere publishes, adds to a replay port."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from accel_rl.arguments import function, instance, integer, whole
from accel_rl.train.actors import DeviceActor, Exploration, Seat, Setting, Version
from accel_rl.train.collection import Episodes
from accel_rl.train.pipelined_arguments import state_of
from accel_rl.train.placement import Placement
from accel_rl.train.program import Program
from accel_rl.types import Array, ReplayPort


class Acted(NamedTuple):
    """What an actor did in an iteration."""

    iteration: int
    updates: int  # that its policy had seen
    episodes: Episodes  # of NumPy


def act(
    program: Program,
    key: Array,
    port: ReplayPort,
    newest: Callable[[], Version],
    *,
    number: int = 0,
    num_actors: int = 1,
    first: int = 0,
    restarts: int = 0,
    hyper: Mapping[str, Any] | None = None,
    actor_priorities: int = 0,
    exploration: Exploration | None = None,
    placement: Placement | None = None,
    on_acted: Callable[[Acted], bool],
) -> None:
    """Acts with its part of the program's environments until told to stop.

    Steps, keys and priorities are those of an actor of `pipelined` in asynchronous mode; the
    learner is `pipelined` with `num_actors=0`, wherever it runs.

    Args:
      program: the same as the learner's, but for its memory.
      key: random key of the training, the same for all.
      port: what it adds to.
      newest: gives the newest policy that there is; called before each iteration.
      number: of this actor, 0 to num_actors - 1.
      num_actors: that share the program's environments.
      first: iteration to begin with, by which schedules of exploration go.
      restarts: how often this actor was started before: its keys, and the states in which its
        environments begin, are then others.
      hyper: arguments of `program.init`.
      actor_priorities: rewards in the targets by whose errors it gives first priorities; 0: none.
      exploration: changes the policy for its environments; see `ape_x_exploration`.
      placement: its `act` says where to act.
      on_acted: called after each iteration; it returns whether to go on.

    Raises:
      ValueError: if a number is out of range.
      TypeError: if an argument is of another type, or the environment steps on the host.
    """
    instance("program", program, Program, "train.make makes one")
    function("newest", newest)
    function("on_acted", on_acted)
    if integer("num_actors", num_actors) < 1 or program.schedule.num_envs % num_actors:
        raise ValueError(
            f"num_actors must divide num_envs, {program.schedule.num_envs}, got {num_actors}"
        )
    for name, value, most in (
        ("number", number, num_actors - 1),
        ("first", first, 2**29),
        ("restarts", restarts, 2**29),
    ):
        whole(name, value, 0, most)
    placement = Placement() if placement is None else placement
    state = state_of(program, key, hyper)
    setting = Setting(program, num_actors, actor_priorities, exploration)
    gamma = np.float32(jax.device_get(state.hyper["gamma"]))
    seat = Seat(setting, number, placement.actor(number), jax.device_get(state.key), gamma)
    own = slice(int(seat.first), int(seat.first) + setting.num_envs)
    actor = DeviceActor(seat, jax.tree.map(lambda leaf: leaf[own], state.actor))
    if restarts:
        actor.restart(newest(), restarts)
    iteration, going = first, True
    while going:
        rollout = actor.collect(newest(), iteration)
        port.add(rollout.transitions, rollout.priorities)
        going = on_acted(Acted(iteration, rollout.updates, rollout.episodes))
        iteration += 1
