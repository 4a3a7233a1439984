"""Pipelined executors: acting, replay and learning side by side, each on its devices."""

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from accel_rl.agents.exploration import Exploration
from accel_rl.arguments import one_of, whole
from accel_rl.io.loggers import Row
from accel_rl.replay import Replay
from accel_rl.train.compiled import initial_state
from accel_rl.train.pipeline.actors import Actor, ActorConfig, ActorSlot, DeviceActor, Version
from accel_rl.train.pipeline.asynchronous import AsynchronousWorkers
from accel_rl.train.pipeline.buffer_ports import port_of
from accel_rl.train.pipeline.context import Context, metric_names, updates_until
from accel_rl.train.pipeline.deterministic import DeterministicWorkers
from accel_rl.train.pipeline.host_actor import HostActor, HostEnvironments, HostEnvironmentSource
from accel_rl.train.pipeline.learner import Learner, UpdateInputs
from accel_rl.train.pipeline.metrics import MetricsRecorder
from accel_rl.train.pipeline.placement import Placement
from accel_rl.train.pipeline.workers import Queue, Restarts, Workers, WorkerSpan
from accel_rl.train.program import Program
from accel_rl.train.schedule import segments
from accel_rl.train.state import TrainState
from accel_rl.train.value_limit import warn_of_excess
from accel_rl.types import Array, PyTree


class PipelineResult(NamedTuple):
    """Final state, logged rows and timeline of a pipelined training."""

    state: TrainState  # each part on its device; replay is None where the buffer is a port
    rows: list[Row]
    timeline: list[WorkerSpan]  # the last steps of the workers


def pipelined(
    program: Program,
    start: Array | TrainState,
    steps: int,
    *,
    executor: str = "deterministic",
    placement: Placement | None = None,
    hyper: Mapping[str, PyTree] | None = None,
    queue_size: int | None = None,
    num_actors: int = 1,
    actor_priorities: int = 0,
    exploration: Exploration | None = None,
    restarts: int = 0,
    env: HostEnvironmentSource | None = None,
    continue_episodes: bool = False,
    period: int | None = None,
    on_row: Callable[[Row], None] | None = None,
    on_publish: Callable[[Version], None] | None = None,
    timeline: int = 0,
    warn: bool = True,
) -> PipelineResult:
    """Train as `fused` does, with acting, replay and learning side by side.

    "deterministic": results depend on the key alone, and equal those of `fused` with the same lags:
    bit for bit for a program with `prevent_fusion` on one kind of CPU, up to rounding elsewhere.
    Steps overlap as far as the lags allow: with a `policy_lag` of 1 or more the actor collects
    while the learner learns, with a `priority_lag` of 1 or more the next batch is sampled
    meanwhile. "asynchronous": workers block only on missing inputs, see `pipeline.asynchronous`;
    the schedule's lags then only set queue sizes.

    Rows have the metrics of `Program.metrics`, and for their period: `policy_age_mean` and
    `policy_age_max`, staleness in updates of the acting policy when its transitions were inserted;
    `priority_age_mean` and `priority_age_max`, priority updates that samples had not seen;
    `rollouts_queued` and `batches_queued`, mean queue lengths; `overlap_seconds`, with two or more
    workers in a step; `worked_seconds_NAME` and `waited_seconds_NAME` of each worker;
    `actor_restarts`; and `seconds` since the start.

    Ctrl-C, an error in a worker, or in `on_row`, ends all workers and is raised here; a worker's
    has a note with its name. A buffer that is a port is then closed.

    Args:
      program: its buffer may be a `Replay` or a replay port.
      start: PRNG key of the training, or a state to continue from, which is copied.
      steps: environment steps, counted from the beginning of the training.
      placement: devices; the default device for everything if None. With a `store` of its own, a
        `Replay` is split as by `SplitPort`; the final state has it joined again.
      hyper: arguments of `program.init`.
      executor: "deterministic" or "asynchronous", see above.
      queue_size: iterations by which actors may be ahead of an asynchronous learner; the schedule's
        policy_lag, at least 1, if None.
      num_actors: that share the environments, asynchronous only. 0: actors run elsewhere (`act`)
        and add to the buffer, a port; iterations and steps then only count updates, which run as
        fast as the port returns samples.
      actor_priorities: n of the n-step TD errors from which actors compute initial priorities, such
        as the buffer's n_step; 0: the buffer assigns them.
      exploration: maps an actor's policy and environment indices to the policy it acts with; see
        `agents.ape_x_exploration`.
      restarts: how often in all an asynchronous actor that raises is restarted, with a
        RuntimeWarning; the next exception ends the training. A restarted actor begins new episodes
        and repeats the iteration.
      env: host environments, all of the program's or a part for each actor; the program is then
        made with `env.environment`. They are not closed. Or a function from an actor's index (0 to
        num_actors - 1) to its environments; these are closed at the end, and before it is called
        again for a restart. Environments that were passed in can be restarted only while they are
        open, which those that failed themselves are not.
      continue_episodes: environments that were passed in go on with the episodes in which `start`,
        a state that `pipelined` returned, has left them; otherwise they are reset.
      period: environment steps between two rows; `steps` / 100 if None.
      on_row: called with each row.
      on_publish: called by the learner with each version of the policy, before it continues.
      timeline: number of latest worker steps to return.
      warn: warn once where values exceed what rewards and discounts allow.
    """
    _check_executor(program, executor, queue_size, num_actors, restarts)
    deterministic = executor == "deterministic"
    size = max(1, program.schedule.policy_lag) if queue_size is None else queue_size
    config = ActorConfig(program, num_actors or 1, actor_priorities, exploration)
    hosts = HostEnvironments(program, env, config.actors)
    placement = Placement() if placement is None else placement
    # Checked before anything is compiled.
    plan = segments(program.schedule, steps, period, part=isinstance(start, TrainState))
    state = initial_state(program, start, hyper)
    schedule = program.schedule
    first = int(state.iteration)
    # Of each row still to come, one past its last iteration.
    ends = [end for end in itertools.accumulate(length for length, _ in plan) if end > first]
    if not ends:
        raise ValueError(
            f"steps must be more than the {first * schedule.steps} of the state, got {steps}"
        )
    port = port_of(program, state, placement)
    done = updates_until(schedule, first - 1)
    learner = Learner(program, state, placement, actor_priorities > 0, done)
    workers = Workers(timeline)
    # The lags bound what waits in each queue; before learning starts nothing else holds actors.
    ahead = schedule.policy_lag + 1 if deterministic else size
    rollouts = [Queue(workers, ahead) for _ in range(num_actors)]
    batches = Queue(
        workers, schedule.priority_lag + 1 if deterministic else max(1, schedule.priority_lag)
    )
    inputs = UpdateInputs(program, state, placement.index())

    def actor(number: int) -> Actor:
        slot = ActorSlot.of(config, number, placement, state)
        mine = slot.share(state.actor)
        if env is None:
            return DeviceActor(slot, mine)
        open_environments = functools.partial(hosts.of, number)
        return HostActor(slot, open_environments, mine, first, continue_episodes)

    queues = {"batches": [batches]}
    if rollouts:
        queues["rollouts"] = rollouts
    budget = Restarts(restarts)
    with hosts:
        context = Context(
            program=program,
            first=first,
            last=ends[-1],
            actors=[actor(number) for number in range(num_actors)],
            port=port,
            learner=learner,
            inputs=inputs,
            workers=workers,
            recorder=MetricsRecorder(
                program, state, ends, metric_names(program), workers, queues, budget
            ),
            restarts=budget,
            rollouts=rollouts,
            batches=batches,
            on_publish=on_publish,
        )
        if on_publish is not None:
            on_publish(learner.version)
        mode: DeterministicWorkers | AsynchronousWorkers
        if deterministic:
            mode = DeterministicWorkers(context, state)
        else:
            mode = AsynchronousWorkers(context, state, size, placement.storage())
        rows = _run(context, mode, on_row, warn)
    policies, priorities = mode.delayed()
    actor_state = state.actor
    if context.actors:
        states = jax.device_put([each.state for each in context.actors], placement.actor(0))
        actor_state = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)
    final = TrainState(
        agent=learner.state,
        # Joined on one device, where the fused executor and checkpoints expect it.
        replay=jax.device_put(port.state, placement.index())
        if port is not program.buffer
        else None,
        actor=actor_state,
        delayed_policies=policies,
        delayed_priorities=priorities,
        key=state.key,
        iteration=jnp.int32(context.last),
        value_limit=jnp.float32(context.recorder.value_limit),
        hyper=state.hyper,
    )
    return PipelineResult(final, rows, list(workers.timeline))


def _check_executor(
    program: Program, executor: str, queue_size: int | None, num_actors: int, restarts: int
) -> None:
    """Raise ValueError for arguments that the executor or the program does not take."""
    one_of("executor", executor, ("deterministic", "asynchronous"))
    if queue_size is not None:
        whole("queue_size", queue_size, 1)
    whole("restarts", restarts, 0)
    if executor == "deterministic":
        if queue_size is not None or num_actors != 1 or restarts:
            raise ValueError(
                "queue_size, num_actors and restarts are for the asynchronous executor, got "
                f"{queue_size}, {num_actors} and {restarts}: in the deterministic one, the "
                "schedule's lags set how far its one actor is ahead, and new episodes would not "
                "depend on the key alone"
            )
        if not isinstance(program.buffer, Replay) and program.buffer.limited:
            raise ValueError(
                "the buffer must not limit samples per insert (samples_per_insert) with the "
                "deterministic executor, whose schedule does that: both could wait for ever"
            )
    if num_actors == 0 and isinstance(program.buffer, Replay):
        raise ValueError(
            "num_actors may be 0 only for a program whose buffer is a port, to which others add"
        )


def _run(
    context: Context,
    mode: DeterministicWorkers | AsynchronousWorkers,
    on_row: Callable[[Row], None] | None,
    warn: bool,
) -> list[Row]:
    rows: list[Row] = []
    workers, recorder = context.workers, context.recorder
    ended = False
    try:
        mode.start()
        while not ended:
            with workers.changed:
                workers.changed.wait_for(lambda: recorder.ready or workers.ended)
            if workers.error is not None:
                raise workers.error
            if recorder.ready:
                rows.append(recorder.row())
                warn = warn and not warn_of_excess(rows[-1])
                if on_row is not None:
                    on_row(rows[-1])
            else:
                ended = True
    finally:
        workers.stop()
        if not ended:
            context.port.close()  # wakes the workers that wait for it
        workers.join()
    return rows
