"""Actor of a distributed training."""

import dataclasses
import json
import threading
import time
from collections.abc import Callable

import jax

from accel_rl import train
from accel_rl.arguments import whole, within
from accel_rl.remote.apex import mailbox
from accel_rl.remote.apex.mailbox import ActorReport, Newest
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.apex.watch import watched
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.errors import ConnectionLost
from accel_rl.remote.port import RemotePort
from accel_rl.remote.recovery import retry_connect
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import ActorProgress
from accel_rl.train.pipeline.actors import Published

REPORTS = 0.2  # seconds between two reports
RECONNECT = 30.0  # seconds to wait for a server that is restarted


def run_actor(
    training: ApexTraining,
    address: Address,
    number: int,
    *,
    secret: bytes | None = None,
    reconnect: float = RECONNECT,
    life: int = 0,
    should_continue: Callable[[], bool] = lambda: True,
) -> None:
    """Act, compute initial priorities and add transitions to the replay buffer, until stopped.

    A restarted actor begins new episodes, with fresh PRNG keys.

    Args:
      training: from `load`.
      address: of the server, or of several shards, in the same order for all processes.
      number: index of this actor, 0 to training.num_actors - 1.
      secret: shared secret, if the server has one.
      reconnect: seconds to wait for a server that is restarted.
      life: number of earlier starts of this actor; more if the server knows of more.
      should_continue: polled from a thread; False stops the actor, even while it waits for the
        limiter.

    Raises:
      ValueError: if the number is out of range, or the training differs from the learner's.
      RemoteError: if the server is lost for longer than `reconnect`.
    """
    whole("number", number, 0, training.num_actors - 1)
    whole("life", life, 0)
    within("reconnect", reconnect, "[0, inf)")
    where = first_of(address)
    with retry_connect(
        lambda: ReplayClient(where, secret, reconnect=reconnect), reconnect, should_continue
    ) as client:
        port = training.port(address, training.envs_per_actor, secret, recover=reconnect)
        try:
            with watched(port, lambda: None if should_continue() else "told to stop"):
                _act(training, client, port, number, life, should_continue)
        except RuntimeError:
            if should_continue():
                raise


def obey(order: str, ended: threading.Event) -> None:
    """Run `run_actor` with a launcher's line of JSON, until `ended` is set."""
    orders = json.loads(order)
    secret = None if orders["secret"] is None else bytes.fromhex(orders["secret"])
    try:
        run_actor(
            ApexTraining.from_tables(orders["training"]),
            orders["address"],
            orders["number"],
            secret=secret,
            reconnect=orders["reconnect"],
            life=orders["life"],
            should_continue=lambda: not ended.is_set(),
        )
    except ConnectionLost:
        if not ended.wait(1.0):  # the server may be closed a moment before the actors
            raise


def _act(
    training: ApexTraining,
    client: ReplayClient,
    port: RemotePort,
    number: int,
    life: int,
    should_continue: Callable[[], bool],
) -> None:
    program = training.program(port)
    agent = program.agent

    def published() -> Published:
        state = agent.init(training.key, **training.hyper["agent"])
        return Published(agent.policy(state), agent.critics(state))

    before, run = mailbox.reported(client, training.run, number), training.run
    done = ActorReport(life, -1, 0, 0, 0, 0.0, 0.0)
    if before is not None:
        done = dataclasses.replace(before, life=max(life, before.life + 1))
    lost = done.doubtful
    # Report before acting: if this life ends early, the next one still counts it.
    mailbox.report(client, run, number, done)
    first, said = done.iteration + 1, time.monotonic()
    steps = training.envs_per_actor * training.schedule.rollout

    def on_acted(acted: ActorProgress) -> bool:
        nonlocal done, said
        done = ActorReport(
            done.life,
            acted.iteration,
            done.steps + steps,
            acted.updates,
            done.episodes + int(acted.episodes.count),
            done.episode_return + float(acted.episodes.episode_return),
            done.episode_length + float(acted.episodes.episode_length),
            lost + port.doubtful,
        )
        if time.monotonic() > said + REPORTS:
            said = time.monotonic()
            mailbox.report(client, run, number, done)
        return should_continue()

    train.act(
        program,
        training.key,
        port,
        Newest(client, run, jax.eval_shape(published), should_continue),
        number=number,
        num_actors=training.num_actors,
        first=first,
        restarts=done.life,
        hyper=training.hyper,
        actor_priorities=training.n_step,
        exploration=training.exploration,
        on_acted=on_acted,
    )
