"""Standalone actor: acts with a policy published elsewhere, and adds to a replay port."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from accel_rl.agents.exploration import Exploration
from accel_rl.arguments import whole
from accel_rl.train.collection import Episodes
from accel_rl.train.compiled import initial_state
from accel_rl.train.pipeline.actors import ActorConfig, ActorSlot, DeviceActor, Version
from accel_rl.train.pipeline.placement import Placement
from accel_rl.train.program import Program
from accel_rl.types import Array, PyTree, ReplayPort


class ActorProgress(NamedTuple):
    """Result of one iteration of a standalone actor."""

    iteration: int
    updates: int  # seen by its policy
    episodes: Episodes  # NumPy scalars


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
    hyper: Mapping[str, PyTree] | None = None,
    actor_priorities: int = 0,
    exploration: Exploration | None = None,
    placement: Placement | None = None,
    on_acted: Callable[[ActorProgress], bool],
) -> None:
    """Act with a share of the program's environments until told to stop.

    Steps, keys and priorities are those of an actor of the asynchronous executor; the learner is
    `pipelined` with `num_actors=0`, in any process.

    Args:
      program: the learner's, except for its buffer.
      key: PRNG key of the training, equal for all processes.
      port: receives the transitions.
      newest: returns the newest policy; called before each iteration.
      number: index of this actor, 0 to num_actors - 1.
      num_actors: that share the program's environments.
      first: first iteration, from which exploration schedules count.
      restarts: how often this actor was started before; its keys and initial environment states
        depend on it.
      hyper: arguments of `program.init`.
      actor_priorities: n of the n-step TD errors of initial priorities; 0: none are computed.
      exploration: see `pipelined`.
      placement: its `act` is the device.
      on_acted: called after each iteration; returns whether to continue.
    """
    config = ActorConfig(program, num_actors, actor_priorities, exploration)
    whole("number", number, 0, num_actors - 1)
    # Keys are folded from 32 bits, of which the highest 3 tell streams apart.
    whole("first", first, 0, 2**29)
    whole("restarts", restarts, 0, 2**29)
    placement = Placement() if placement is None else placement
    state = initial_state(program, key, hyper)
    slot = ActorSlot.of(config, number, placement, state)
    actor = DeviceActor(slot, slot.share(state.actor))
    if restarts:
        actor.restart(newest(), restarts)
    iteration, going = first, True
    while going:
        rollout = actor.collect(newest(), iteration)
        port.add(rollout.transitions, rollout.priorities)
        going = on_acted(ActorProgress(iteration, rollout.updates, rollout.episodes))
        iteration += 1
