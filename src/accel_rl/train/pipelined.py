"""The executor on the host: acting, memory and learning in threads, on devices of their own."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import instance, whole
from accel_rl.train.actors import Actor, DeviceActor, Exploration, Seat, Setting, Version
from accel_rl.train.asynchronous import Asynchronous
from accel_rl.train.host_acting import HostActor
from accel_rl.train.hosts import Given, Hosts
from accel_rl.train.job import Job, metric_names, updates_until
from accel_rl.train.learning import Drawing, Learner
from accel_rl.train.ledger import Ledger
from accel_rl.train.lockstep import Lockstep
from accel_rl.train.pipelined_arguments import check_sizes, ends_of, port_of, state_of
from accel_rl.train.placement import Placement
from accel_rl.train.program import Program
from accel_rl.train.queues import Queue, Span, Workers
from accel_rl.train.restarts import Restarts
from accel_rl.train.rows import Row
from accel_rl.train.schedule import segments
from accel_rl.train.state import TrainState
from accel_rl.types import Array


class Pipelined(NamedTuple):
    """What a pipelined training ends with."""

    state: TrainState  # each part on its device; replay is None where the memory is a port
    rows: list[Row]
    timeline: list[Span]  # the last steps that workers took


def pipelined(
    program: Program,
    start: Array | TrainState,
    steps: int,
    *,
    placement: Placement | None = None,
    hyper: Mapping[str, Any] | None = None,
    deterministic: bool = True,
    queue_size: int | None = None,
    num_actors: int = 1,
    actor_priorities: int = 0,
    exploration: Exploration | None = None,
    restarts: int = 0,
    env: Given | None = None,
    period: int | None = None,
    on_row: Callable[[Row], None] | None = None,
    on_publish: Callable[[Version], None] | None = None,
    timeline: int = 0,
) -> Pipelined:
    """Trains as `whole` does, with acting, memory and learning side by side.

    In deterministic mode what is computed depends on the key alone, and is what `whole` computes
    with the same lags: bit for bit of a `fenced` program on one kind of CPU, up to rounding
    elsewhere. Steps overlap as far as the lags allow: with a `policy_lag` of 1 or more the actor
    collects while the learner learns, with a `priority_lag` of 1 or more the next batch is sampled
    meanwhile. In asynchronous mode nobody waits but for what is not there: see `asynchronous`; lags
    of the schedule then only set how much is kept ready.

    Rows have the metrics of `Program.metrics`, and of their period: `policy_age_mean` and
    `policy_age_max`, by how many updates policies were behind the learner when what they collected
    was inserted; `priority_age_mean` and `priority_age_max`, how many updates' priorities samples
    had not seen; `rollouts_queued` and `batches_queued`, how many were waiting when one was taken;
    `overlap_seconds`, in which two workers or more were at a step; `worked_seconds_NAME` and
    `waited_seconds_NAME` of each worker; `actor_restarts`, and `seconds`, since the start.

    Ctrl-C, an error in a worker, or in `on_row`, ends all workers and is raised here; a worker's
    has a note that names it. The memory, if it is a port, is then closed.

    Args:
      program: its memory may be a `Replay`, or a port.
      start: random key of the training, or a state to go on from, which is copied.
      steps: environment steps, from the first of the training.
      placement: devices; the default one for everything if None. With a `store` of its own, a
        `Replay` is split as by `SplitPort`; the state at the end has it together again.
      hyper: arguments of `program.init`.
      deterministic: see above.
      queue_size: iterations by which actors may be ahead of the learner, in asynchronous mode; the
        schedule's policy_lag, at least 1, if None.
      num_actors: how many share the environments, in asynchronous mode. 0: actors are elsewhere
        (`act`) and add to the memory, a port; iterations and steps then only count updates, which
        go as fast as the port gives samples.
      actor_priorities: rewards in the targets by whose errors actors give their transitions a first
        priority, such as the memory's n_step; 0: the memory gives it.
      exploration: changes the policy for an actor's environments; see `ape_x_exploration`.
      restarts: how often in all an actor that raises an exception is started anew, in asynchronous
        mode, with a RuntimeWarning; the exception after that ends the training. Its environments
        begin new episodes and do the iteration again, all of it.
      env: host environments, all of the program's or a part for each actor; the program is then
        made with `env.environment`. They start new episodes, and are not closed. Or a function of
        an actor's number (0 to num_actors - 1) that opens its part; what it opened is closed at the
        end, and before it is called again for a restart. Others can be restarted only if they are
        still open, which those that failed themselves are not.
      period: environment steps between two rows; a hundredth of `steps` if None.
      on_row: called with each row.
      on_publish: called by the learner with each version of the policy, before it goes on.
      timeline: how many of the last steps of workers are kept.

    Raises:
      ValueError: if a number is out of range, or arguments do not fit each other.
      TypeError: if an argument is of another type; if `start` is neither a key nor a state; if the
        program's environment steps on the host, and `env` is None.
    """
    size = check_sizes(program, deterministic, queue_size, num_actors, actor_priorities, restarts)
    hosts = Hosts(program, env, max(1, num_actors))
    placement = Placement() if placement is None else placement
    instance("placement", placement, Placement)
    whole("timeline", timeline, 0)
    segments(program.schedule, steps, period)  # which checks numbers, before anything is compiled
    state = state_of(program, start, hyper)
    schedule = program.schedule
    first = int(state.iteration)
    ends = ends_of(program, steps, period, first)
    port = port_of(program, state, placement)
    done = updates_until(schedule, first - 1)
    learner = Learner(program, state, placement, actor_priorities > 0, done)
    workers = Workers(timeline)
    # In deterministic mode lags say how much waits where; but before learning, nobody holds actors.
    ahead = schedule.policy_lag + 1 if deterministic else size
    rollouts = [Queue(workers, ahead) for _ in range(num_actors)]
    batches = Queue(
        workers, schedule.priority_lag + 1 if deterministic else max(1, schedule.priority_lag)
    )
    drawing = Drawing(program, state, placement.memory())
    setting = Setting(program, max(1, num_actors), actor_priorities, exploration)

    def actor(number: int) -> Actor:
        device, gamma = placement.actor(number), np.float32(drawing.gamma)
        seat = Seat(setting, number, device, jax.device_get(state.key), gamma)
        own = slice(int(seat.first), int(seat.first) + setting.num_envs)
        mine = jax.tree.map(lambda leaf: leaf[own], state.actor)
        if env is None:
            return DeviceActor(seat, mine)
        return HostActor(seat, functools.partial(hosts.of, number), mine, first)

    queues = {"batches": [batches]}
    if rollouts:
        queues["rollouts"] = rollouts
    anew = Restarts(restarts)
    with hosts:
        job = Job(
            program=program,
            first=first,
            last=ends[-1],
            actors=[actor(number) for number in range(num_actors)],
            port=port,
            learner=learner,
            drawing=drawing,
            workers=workers,
            ledger=Ledger(program, state, ends, metric_names(program), workers, queues, anew),
            restarts=anew,
            rollouts=rollouts,
            batches=batches,
            on_publish=on_publish,
        )
        if on_publish is not None:
            on_publish(learner.version)
        mode: Lockstep | Asynchronous
        if deterministic:
            mode = Lockstep(job, state)
        else:
            mode = Asynchronous(job, state, size, placement.storage())
        rows = _run(job, mode, on_row)
    policies, late = mode.rest()
    stands = state.actor
    if job.actors:
        states = jax.device_put([each.state for each in job.actors], placement.actor(0))
        stands = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)
    final = TrainState(
        agent=learner.state,
        # On one device, as everything else takes it.
        replay=jax.device_put(port.state, placement.memory())
        if port is not program.memory
        else None,
        actor=stands,
        policies=policies,
        late=late,
        key=state.key,
        iteration=jnp.int32(job.last),
        hyper=state.hyper,
    )
    return Pipelined(final, rows, list(workers.timeline))


def _run(
    job: Job, mode: Lockstep | Asynchronous, on_row: Callable[[Row], None] | None
) -> list[Row]:
    rows: list[Row] = []
    workers, ledger = job.workers, job.ledger
    ended = False
    try:
        mode.start()
        while not ended:
            with workers.changed:
                workers.changed.wait_for(lambda: ledger.ready or workers.ended)
            if workers.error is not None:
                raise workers.error
            if ledger.ready:
                rows.append(ledger.row())
                if on_row is not None:
                    on_row(rows[-1])
            else:
                ended = True
    finally:
        workers.stop()
        if not ended:
            job.port.close()  # which wakes whoever waits for it
        workers.join()
    return rows
