"""What starts a training's actors, watches over them, and starts those again that fail."""

import base64
import contextlib
import dataclasses
import json
import threading
import warnings
from abc import abstractmethod
from typing import Any, Generic, TypeVar

from accel_rl.arguments import instance, whole
from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.closing import Closing
from accel_rl.remote.shard import Address, as_text

T = TypeVar("T")

LOOK = 0.2  # seconds between two looks at the actors
PATIENCE = 20.0  # seconds that an actor is given to end its iteration


class Actors(Closing, Generic[T]):
    """The actors of a training, by number; how and where they run, its kinds say.

    A kind gives `_start`, `_how` and `_stop`. What actors are told travels as a line of JSON.

    Args:
      settings: the training's.
      address: of the server, or of several.
      secret: what both sides know, if the server has one.
      restarts: how often in all an actor that ended by itself is started again, with a
        RuntimeWarning; after that it stays away, and the others go on. See `gone`.

    Attributes:
      running: what `_start` gave, by number.
      restarted: how often one was started again.

    Raises:
      ValueError: if `restarts` is below 0.
      TypeError: if an argument is of another type; if the address is no text, as that of a
        `ReplayServer` of this process.
    """

    def __init__(
        self,
        settings: ApexSettings,
        address: Address,
        *,
        secret: bytes | None = None,
        restarts: int = 0,
    ) -> None:
        """Starts them; they need a while to import what they need."""
        instance("settings", settings, ApexSettings)
        whole("restarts", restarts, 0)
        self._orders: dict[str, Any] = {
            "settings": dataclasses.asdict(settings),
            "address": as_text(address),
            "secret": None if secret is None else base64.b64encode(secret).decode(),
        }
        self._restarts, self.restarted = restarts, 0
        self._gone: dict[int, str] = {}  # and how they ended
        self._closing = threading.Event()
        self.running: list[T] = []
        try:
            for number in range(settings.num_actors):
                self.running.append(self._start(number))
        except BaseException:
            self._stop()
            raise
        self._watch = threading.Thread(target=self._look, name="actors", daemon=True)
        self._watch.start()

    @abstractmethod
    def _start(self, number: int) -> T:
        """Starts an actor with `self._order(number)`.

        Raises:
          Exception: of whatever type its kind has, if it cannot be started.
        """

    @abstractmethod
    def _how(self, actor: T) -> str | None:
        """How it ended, as "exit code 1"; None while it runs."""

    @abstractmethod
    def _stop(self) -> None:
        """Ends all that run, after their iteration if that takes no longer than PATIENCE."""

    def _order(self, number: int) -> str:
        return json.dumps({**self._orders, "number": number})

    @property
    def alive(self) -> int:
        """How many run."""
        return sum(self._how(actor) is None for actor in self.running)

    def gone(self) -> str | None:
        """Why nobody acts any more; None as long as somebody does, or is to be started again."""
        if len(self._gone) < len(self.running):
            return None
        return f"all actors have ended: {', '.join(self._gone[n] for n in sorted(self._gone))}"

    def close(self) -> None:
        """Ends them after their iteration; a second time does nothing."""
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
        """Starts it again or lets it go, and then warns, which may raise."""
        what = "it stays away"
        again = self.restarted < self._restarts
        if again:
            self.restarted += 1
            try:
                self.running[number] = self._start(number)
                what = "it is started again"
            except Exception as error:  # the thread that watches must not end by it
                what, again = f"it could not be started again: {error}", False
        if not again:
            self._gone[number] = how
        with contextlib.suppress(RuntimeWarning):
            warnings.warn(f"actor {number} ended with {how}: {what}", RuntimeWarning, stacklevel=2)
