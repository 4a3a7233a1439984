"""Actor of a distributed training."""

import base64
import dataclasses
import json
import threading
import time
from collections.abc import Callable

import jax

from accel_rl import train
from accel_rl.arguments import whole
from accel_rl.remote.apex import mailbox
from accel_rl.remote.apex.mailbox import ActorReport, Newest
from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.apex.watch import watched
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.errors import ConnectionLost
from accel_rl.remote.port import RemotePort
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import ActorProgress
from accel_rl.train.pipeline.actors import Published

REPORTS = 0.2  # seconds between two reports


def run_actor(
    settings: ApexSettings,
    address: Address,
    number: int,
    *,
    secret: bytes | None = None,
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Act, compute initial priorities and add transitions to the replay buffer, until stopped.

    A restarted actor begins new episodes, with fresh PRNG keys.

    Args:
      settings: of the training.
      address: of the server, or of several shards, in the same order for all processes.
      number: index of this actor, 0 to settings.num_actors - 1.
      secret: shared secret, if the server has one.
      going: polled from a thread; False stops the actor, even while it waits for the limiter.

    Raises:
      ValueError: if the number is out of range, or the settings differ from the learner's.
      RemoteError: if the server is lost.
    """
    whole("number", number, 0, settings.num_actors - 1)
    with ReplayClient(first_of(address), secret) as client:
        port = settings.port(address, settings.envs_per_actor, secret)
        try:
            with watched(port, lambda: None if going() else "told to stop"):
                _act(settings, client, port, number, going)
        except RuntimeError:
            if going():
                raise


def obey(order: str, ended: threading.Event) -> None:
    """Run `run_actor` with a launcher's line of JSON, until `ended` is set."""
    orders = json.loads(order)
    secret = None if orders["secret"] is None else base64.b64decode(orders["secret"])
    try:
        run_actor(
            ApexSettings(**orders["settings"]),
            orders["address"],
            orders["number"],
            secret=secret,
            going=lambda: not ended.is_set(),
        )
    except ConnectionLost:
        if not ended.wait(1.0):  # the server may be closed a moment before the actors
            raise


def _act(
    settings: ApexSettings,
    client: ReplayClient,
    port: RemotePort,
    number: int,
    going: Callable[[], bool],
) -> None:
    program = settings.program(port)
    agent = program.agent

    def published() -> Published:
        state = agent.init(settings.key, **settings.hyper["agent"])
        return Published(agent.policy(state), agent.critics(state))

    before, run = mailbox.reported(client, settings.run, number), settings.run
    done = ActorReport(0, -1, 0, 0, 0, 0.0, 0.0)
    if before is not None:
        done = dataclasses.replace(before, life=before.life + 1)
    # Report before acting: if this life ends early, the next one still counts it.
    mailbox.report(client, run, number, done)
    first, said = done.iteration + 1, time.monotonic()
    steps = settings.envs_per_actor * settings.rollout

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
        )
        if time.monotonic() > said + REPORTS:
            said = time.monotonic()
            mailbox.report(client, run, number, done)
        return going()

    train.act(
        program,
        settings.key,
        port,
        Newest(client, run, jax.eval_shape(published), going),
        number=number,
        num_actors=settings.num_actors,
        first=first,
        restarts=done.life,
        hyper=settings.hyper,
        actor_priorities=settings.n_step,
        exploration=settings.exploration,
        on_acted=on_acted,
    )
