"""An actor's process."""

import threading
import time
from collections.abc import Callable

import jax

from accel_rl import train
from accel_rl.remote.apex import mailbox
from accel_rl.remote.apex.mailbox import Newest, Report
from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.port import RemotePort
from accel_rl.train import Acted
from accel_rl.train.acting import Published

REPORTS = 0.2  # seconds between two reports
LOOK = 0.1  # seconds between two looks at whether to stop
UNREPORTED = 100_000  # iterations; more than there can be between two reports


def run_actor(
    settings: ApexSettings,
    address: str,
    number: int,
    *,
    secret: bytes | None = None,
    going: Callable[[], bool] = lambda: True,
) -> None:
    """Acts, computes first priorities and adds to the memory, until told to stop.

    An actor that was started again goes on behind the last iteration that it reported.

    Args:
      settings: the training's.
      address: of the server.
      number: of this actor, 0 to settings.num_actors - 1.
      secret: what both sides know, if the server has one.
      going: asked all the time, from a thread: also an actor that waits for the limiter stops.

    Raises:
      ValueError: if the number is out of range, or settings do not fit the learner's.
      RemoteError: if the server is lost.
    """
    with ReplayClient(address, secret) as client:
        port = settings.port(address, settings.envs_per_actor, secret)
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(LOOK):
                if not going():
                    port.close()  # which ends a call that waits
                    return

        watching = threading.Thread(target=watch, name="watch", daemon=True)
        watching.start()
        try:
            _act(settings, client, port, number, going)
        except RuntimeError:
            if going():
                raise
        finally:
            ended.set()
            watching.join()
            port.close()


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

    before = mailbox.reported(client, number)
    done = Report(-1, 0, 0, 0, 0.0, 0.0) if before is None else before
    # What it did after its last report is not known: those keys are not used again.
    first = 0 if before is None else before.iteration + 1 + UNREPORTED
    said = time.monotonic()
    steps = settings.envs_per_actor * settings.rollout

    def on_acted(acted: Acted) -> bool:
        nonlocal done, said
        done = Report(
            acted.iteration,
            done.steps + steps,
            acted.updates,
            done.episodes + int(acted.episodes.count),
            done.episode_return + float(acted.episodes.episode_return),
            done.episode_length + float(acted.episodes.episode_length),
        )
        if time.monotonic() > said + REPORTS:
            said = time.monotonic()
            mailbox.report(client, number, done)
        return going()

    train.act(
        program,
        settings.key,
        port,
        Newest(client, jax.eval_shape(published)),
        number=number,
        num_actors=settings.num_actors,
        first=first,
        hyper=settings.hyper,
        actor_priorities=settings.n_step,
        exploration=settings.exploration,
        on_acted=on_acted,
    )
