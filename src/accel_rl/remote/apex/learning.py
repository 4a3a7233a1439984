"""Learner: `train.pipelined` without actors, publishing through the server's mailbox."""

import contextlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from accel_rl import train
from accel_rl.arguments import whole, within
from accel_rl.io.loggers import Row
from accel_rl.remote.apex import mailbox, replicas
from accel_rl.remote.apex.acting import RECONNECT
from accel_rl.remote.apex.mailbox import ActorReport, Publisher
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.apex.watch import watched
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.errors import RemoteError
from accel_rl.remote.recovery import retry_connect
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import PipelineResult, TrainState
from accel_rl.train.pipeline.context import updates_until
from accel_rl.train.schedule import Schedule, default_period

RENEW = 1.0  # seconds between two looks whether the server was restarted


def run_learner(
    training: ApexTraining,
    address: Address,
    steps: int,
    *,
    secret: bytes | None = None,
    period: int | None = None,
    reconnect: float = RECONNECT,
    life: int = 0,
    start: TrainState | None = None,
    every: int | None = None,
    ended: Callable[[], str | None] = lambda: None,
    on_row: Callable[[Row], None] | None = None,
    on_state: Callable[[TrainState], None] | None = None,
) -> PipelineResult:
    """Learn from the transitions that actors add, for the updates that `steps` corresponds to.

    If `jax.distributed` has several processes, all call this function and form one learner: each
    samples an equal share of every batch, and the first publishes.

    Rows have, in place of the metrics of acting, metrics from the reports of actors since the last
    row: the number `episodes`, and the means `episode_return` and `episode_length`, NaN if no
    episode finished. Further columns are `acted_steps`, since the beginning; `actors_heard`, the
    number of actors that have reported; `policy_age_mean` and `policy_age_max`, the staleness in
    updates of the policies last reported; `items_doubtful`, the transitions whose push had an
    unknown outcome, since the beginning; and `shards_lost`, the number of shards lost then.

    Args:
      training: from `load`.
      address: of the server, or of several shards, in the same order for all processes.
      steps: environment steps of all actors; the server's limiter couples updates to them.
      secret: shared secret, if the server has one.
      period: environment steps between rows; a hundredth of `steps` if None.
      reconnect: seconds to wait for a server that is restarted.
      life: number of earlier starts of this training's learner, whose policies it replaces.
      start: state to continue from; None: the training's beginning.
      every: environment steps between two calls of `on_state`, rounded up to whole periods; None:
        only at the end.
      ended: polled from a thread; a returned reason ends the training.
      on_row: called with each row.
      on_state: called with the state at those steps, and at the end.

    Raises:
      ValueError: if `steps` leaves no updates, or `life` is 0 and the server has had a training of
        that name.
      RuntimeError: with the reason that `ended` returns; a `RemoteError` if the server is lost for
        longer than `reconnect`.
    """
    whole("life", life, 0)
    within("reconnect", reconnect, "[0, inf)")
    schedule = training.schedule
    first = 0 if start is None else int(start.iteration)
    period = default_period(whole("steps", steps, 1)) if period is None else period
    if first * schedule.steps >= steps:
        raise ValueError(
            f"steps must be more than the {first * schedule.steps} of the state, got {steps}"
        )
    ends = [end for end in _parts(schedule, steps, period, every) if end > first * schedule.steps]
    rank, learners = jax.process_index(), jax.process_count()
    placement = train.Placement(learn=replicas.devices()) if learners > 1 else None
    where = first_of(address)
    with retry_connect(
        lambda: ReplayClient(where, secret, reconnect=reconnect), reconnect
    ) as client:
        if life:
            life = max(life, mailbox.next_life(client, training.run))
        elif rank == 0:
            mailbox.check_free(client, training.run)
        port = training.port(address, schedule.num_envs, secret, (rank, learners), reconnect)
        publisher = Publisher(client, training.run, life)
        heard = ActorMetrics(client, training, updates_until(schedule, first - 1))
        rows: list[Row] = []
        began = looked = time.monotonic()

        def told(row: Row) -> None:
            seconds = time.monotonic() - began  # the executor's begin anew with each part
            found = {"shards_lost": port.lost, "seconds": seconds}
            rows.append(row | heard.since(row["updates"]) | found)
            if on_row is not None:
                on_row(rows[-1])

        def over() -> str | None:
            nonlocal looked
            if rank == 0 and time.monotonic() > looked + RENEW:
                with contextlib.suppress(RemoteError):  # the learner's own calls raise it
                    publisher.renew()
                looked = time.monotonic()
            return ended()

        with watched(port, over):
            program = training.program(port)
            state = start
            for end in ends:
                done = train.pipelined(
                    program,
                    training.key if state is None else state,
                    end,
                    placement=placement,
                    hyper=training.hyper if state is None else None,
                    executor="asynchronous",
                    num_actors=0,
                    actor_priorities=training.n_step,
                    period=period,
                    on_row=told,
                    on_publish=publisher if rank == 0 else None,
                )
                state = done.state
                if on_state is not None:
                    on_state(state)
        return done._replace(rows=rows)


def _parts(schedule: Schedule, steps: int, period: int, every: int | None) -> list[int]:
    """Return the environment steps after which the state is needed, ascending."""
    plan = train.segments(schedule, steps, period)
    ends = list(itertools.accumulate(length * schedule.steps for length, _ in plan))
    if every is None:
        return ends[-1:]
    whole("every", every, 1)
    due = [
        end
        for before, end in itertools.pairwise([0, *ends])
        if end // every > before // every and end > schedule.warmup * schedule.steps
    ]
    return sorted({*due, ends[-1]})


class ActorMetrics:
    """Metrics from the reports of actors, over successive periods.

    Args:
      client: of the server.
      training: of the actors.
      updates: of the learner so far.
    """

    def __init__(self, client: ReplayClient, training: ApexTraining, updates: int = 0) -> None:
        self._client, self._training, self._updates = client, training, updates
        self._known: dict[int, ActorReport] = {}
        self._gains()  # a learner that continues has written the rows of earlier reports

    def since(self, updates: int) -> dict[str, Any]:
        """Return the metrics of a period of so many updates that ends now; see `run_learner`."""
        self._updates += updates
        count, total, length = self._gains()
        reports = self._known.values()
        ages = [max(0, self._updates - each.updates) for each in reports if each.iteration >= 0]
        return {
            "episodes": int(count),
            "episode_return": total / count if count else float("nan"),
            "episode_length": length / count if count else float("nan"),
            "acted_steps": sum(each.steps for each in reports),
            "items_doubtful": sum(each.doubtful for each in reports),
            "actors_heard": len(reports),
            "policy_age_mean": float(np.mean(ages)) if ages else float("nan"),
            "policy_age_max": max(ages, default=0),
        }

    def _gains(self) -> np.ndarray:
        """Return the sums over episodes that were reported since the last call."""
        gains = np.zeros(3)
        for number in range(self._training.num_actors):
            found = mailbox.reported(self._client, self._training.run, number)
            if found is None:  # or a restarted server has forgotten it
                continue
            gains += found.episodes, found.episode_return, found.episode_length
            before = self._known.get(number)
            if before is not None and before.steps <= found.steps:
                gains -= before.episodes, before.episode_return, before.episode_length
            # else an actor was restarted whose report the server had forgotten
            self._known[number] = found
        return gains
