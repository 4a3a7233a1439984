"""Start, supervision and restart of a training's actors, as processes on this machine."""

import contextlib
import json
import subprocess
import threading
import time
import warnings
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from accel_rl.arguments import whole, within
from accel_rl.remote.apex.acting import RECONNECT
from accel_rl.remote.apex.roles import start_role
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.closing import Closing
from accel_rl.remote.shard import Address

T = TypeVar("T")

LOOK = 0.2  # seconds between polls of the actors
PATIENCE = 1.5  # seconds for actors to finish their iteration on close


class Actors(Closing, Generic[T]):
    """Actors of a training, indexed by number; subclasses define how and where they run.

    A subclass implements `_start`, `_how` and `_stop`. Orders to actors are a line of JSON.

    Args:
      training: from `load`.
      address: of the server, or of several shards.
      secret: shared secret, if the server has one.
      restarts: total number of restarts of actors that end by themselves, each with a
        RuntimeWarning. After that an ended actor stays away and the others continue; see `gone`.
      reconnect: seconds for which actors wait for a server that is restarted.
      life: number of earlier starts, for keys that none of them had.

    Attributes:
      running: handles returned by `_start`, indexed by actor number.
      restarted: number of restarts so far.
    """

    def __init__(
        self,
        training: ApexTraining,
        address: Address,
        *,
        secret: bytes | None = None,
        restarts: int = 0,
        reconnect: float = RECONNECT,
        life: int = 0,
    ) -> None:
        """Start the actors; do not wait for their imports."""
        whole("restarts", restarts, 0)
        self._orders: dict[str, Any] = {
            "training": training.tables,
            "address": address,
            "secret": None if secret is None else secret.hex(),
            "reconnect": within("reconnect", reconnect, "[0, inf)"),
        }
        self._life = whole("life", life, 0)
        self._restarts, self.restarted = restarts, 0
        self._gone: dict[int, str] = {}  # how ended actors ended, by number
        self._closing = threading.Event()
        self.running: list[T] = []
        try:
            for number in range(training.num_actors):
                self.running.append(self._start(number))
        except BaseException:
            self._stop()
            raise
        self._watch = threading.Thread(target=self._look, name="actors", daemon=True)
        self._watch.start()

    @abstractmethod
    def _start(self, number: int) -> T:
        """Start an actor with the orders `self._order(number)`."""

    @abstractmethod
    def _how(self, actor: T) -> str | None:
        """Describe how an actor ended, such as "exit code 1"; return None while it runs."""

    @abstractmethod
    def _stop(self) -> None:
        """End all running actors, after their iteration if it ends within `PATIENCE`."""

    def _order(self, number: int) -> str:
        life = self._life + self.restarted
        return json.dumps({**self._orders, "number": number, "life": life})

    @property
    def alive(self) -> int:
        """Number of running actors."""
        return sum(self._how(actor) is None for actor in self.running)

    def gone(self) -> str | None:
        """Return how the actors ended if all have and none is restarted, else None."""
        if len(self._gone) < len(self.running):
            return None
        return f"all actors have ended: {', '.join(self._gone[n] for n in sorted(self._gone))}"

    def close(self) -> None:
        """End the actors after their iteration. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._watch.join()
        self._stop()

    def _look(self) -> None:
        while not self._closing.wait(LOOK):
            for number, actor in enumerate(self.running):
                if number not in self._gone and (how := self._how(actor)) is not None:
                    self._replace(number, how)

    def _replace(self, number: int, how: str) -> None:
        """Restart an ended actor, or record its end; then warn."""
        what = "it stays away"
        again = self.restarted < self._restarts
        if again:
            self.restarted += 1
            try:
                self.running[number] = self._start(number)
                what = "it is started again"
            except Exception as error:  # must not end the watching thread
                what, again = f"it could not be started again: {error}", False
        if not again:
            self._gone[number] = how
        with contextlib.suppress(RuntimeWarning):  # a filter may turn it into an error
            warnings.warn(f"actor {number} ended with {how}: {what}", RuntimeWarning, stacklevel=2)


class LocalActors(Actors[subprocess.Popen[str]]):
    """Actors of a training, each in a child process that ends with this one."""

    @property
    def processes(self) -> list[subprocess.Popen[str]]:
        """Actor processes, indexed by actor number."""
        return self.running

    def _start(self, number: int) -> subprocess.Popen[str]:
        return start_role("actor", self._order(number))

    def _how(self, actor: subprocess.Popen[str]) -> str | None:
        return None if actor.poll() is None else f"exit code {actor.returncode}"

    def _stop(self) -> None:
        for process in self.running:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        until = time.monotonic() + PATIENCE
        for process in self.running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
