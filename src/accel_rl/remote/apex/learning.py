"""Learner: `train.pipelined` without actors, publishing through the server's mailbox."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from accel_rl import train
from accel_rl.io.loggers import Row
from accel_rl.remote.apex import mailbox, replicas
from accel_rl.remote.apex.mailbox import ActorReport
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.apex.watch import watched
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import PipelineResult
from accel_rl.train.pipeline.actors import Version


def run_learner(
    training: ApexTraining,
    address: Address,
    steps: int,
    *,
    secret: bytes | None = None,
    period: int | None = None,
    ended: Callable[[], str | None] = lambda: None,
    on_row: Callable[[Row], None] | None = None,
) -> PipelineResult:
    """Learn from the transitions that actors add, for the updates that `steps` corresponds to.

    If `jax.distributed` has several processes, all call this function and form one learner: each
    samples an equal share of every batch, and the first publishes.

    Rows have, in place of the metrics of acting, metrics from the reports of actors since the last
    row: the number `episodes`, and the means `episode_return` and `episode_length`, NaN if no
    episode finished. Further columns are `acted_steps`, since the beginning; `actors_heard`, the
    number of actors that have reported; `policy_age_mean` and `policy_age_max`, the staleness in
    updates of the policies last reported; and `shards_lost`, the number of shards lost then.

    Args:
      training: from `load`.
      address: of the server, or of several shards, in the same order for all processes.
      steps: environment steps of all actors; the server's limiter couples updates to them.
      secret: shared secret, if the server has one.
      period: environment steps between rows; a hundredth of `steps` if None.
      ended: polled from a thread; a returned reason ends the training.
      on_row: called with each row.

    Raises:
      ValueError: if `steps` leaves no updates, or the server has had a training of that name.
      RuntimeError: with the reason that `ended` returns; a `RemoteError` if the server is lost.
    """
    train.segments(training.schedule, steps, period)
    rank, learners = jax.process_index(), jax.process_count()
    placement = train.Placement(learn=replicas.devices()) if learners > 1 else None
    with ReplayClient(first_of(address), secret) as client:
        if rank == 0:
            mailbox.check_free(client, training.run)
        port = training.port(address, training.schedule.num_envs, secret, (rank, learners))
        heard = Heard(client, training)
        rows: list[Row] = []

        def told(row: Row) -> None:
            rows.append(row | heard.since(row["updates"]) | {"shards_lost": port.lost})
            if on_row is not None:
                on_row(rows[-1])

        def publish(version: Version) -> None:
            if rank == 0:
                mailbox.publish(client, training.run, version)

        with watched(port, ended):
            done = train.pipelined(
                training.program(port),
                training.key,
                steps,
                placement=placement,
                hyper=training.hyper,
                executor="asynchronous",
                num_actors=0,
                actor_priorities=training.n_step,
                period=period,
                on_row=told,
                on_publish=publish,
            )
        return done._replace(rows=rows)


class Heard:
    """Metrics from the reports of actors, over successive periods."""

    def __init__(self, client: ReplayClient, training: ApexTraining) -> None:
        self._client, self._training = client, training
        self._before = np.zeros(3)
        self._updates = 0

    def since(self, updates: int) -> dict[str, Any]:
        """Return the metrics of a period of so many updates that ends now; see `run_learner`."""
        run, actors = self._training.run, self._training.num_actors
        found = [mailbox.reported(self._client, run, each) for each in range(actors)]
        self._updates += updates
        reports: list[ActorReport] = [each for each in found if each is not None]
        sums = np.zeros(3)
        for each in reports:
            sums += each.episodes, each.episode_return, each.episode_length
        count, total, length = sums - self._before
        self._before = sums
        ages = [max(0, self._updates - each.updates) for each in reports if each.iteration >= 0]
        return {
            "episodes": int(count),
            "episode_return": total / count if count else float("nan"),
            "episode_length": length / count if count else float("nan"),
            "acted_steps": sum(each.steps for each in reports),
            "actors_heard": len(reports),
            "policy_age_mean": float(np.mean(ages)) if ages else float("nan"),
            "policy_age_max": max(ages, default=0),
        }
