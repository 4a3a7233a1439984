"""Actors as processes of this machine, which are started again when they fail."""

import base64
import contextlib
import dataclasses
import json
import subprocess
import sys
import threading
import time
import warnings

from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.closing import Closing

LOOK = 0.2  # seconds between two looks at the processes
PATIENCE = 20.0  # seconds that an actor is given to end its iteration


class LocalActors(Closing):
    """The actors of a training, each in a process that ends with this one.

    Args:
      settings: the training's.
      address: of the server.
      secret: what both sides know, if the server has one.
      restarts: how often in all an actor that ended by itself is started again, with a
        RuntimeWarning; after that it stays away, and the others go on. See `gone`.

    Attributes:
      processes: one for each actor, by number.
      restarted: how often one was started again.
    """

    def __init__(
        self,
        settings: ApexSettings,
        address: str,
        *,
        secret: bytes | None = None,
        restarts: int = 0,
    ) -> None:
        """Starts them; they need a while to import what they need."""
        if restarts < 0:
            raise ValueError(f"restarts must be at least 0, got {restarts}")
        self._order = {
            "settings": dataclasses.asdict(settings),
            "address": address,
            "secret": None if secret is None else base64.b64encode(secret).decode(),
        }
        self._restarts, self.restarted = restarts, 0
        self._gone: set[int] = set()
        self._closing = threading.Event()
        self.processes = [self._start(number) for number in range(settings.num_actors)]
        self._watch = threading.Thread(target=self._look, name="actors", daemon=True)
        self._watch.start()

    @property
    def alive(self) -> int:
        """How many run."""
        return sum(process.poll() is None for process in self.processes)

    def gone(self) -> str | None:
        """Why nobody acts any more; None as long as somebody does, or is to be started again."""
        if len(self._gone) < len(self.processes):
            return None
        codes = ", ".join(str(process.returncode) for process in self.processes)
        return f"all actors have ended, with exit codes {codes}"

    def close(self) -> None:
        """Ends them after their iteration; a second time does nothing."""
        self._closing.set()
        self._watch.join()
        for process in self.processes:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        until = time.monotonic() + PATIENCE
        for process in self.processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, number: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "accel_rl.remote.apex.process"],
            stdin=subprocess.PIPE,
            text=True,
            process_group=0,  # so that Ctrl-C comes to this process alone, which ends them
        )
        assert process.stdin is not None
        # Not on the command line, which everybody can read. The pipe stays open: its end says that
        # this process has gone, or wants it to stop.
        with contextlib.suppress(BrokenPipeError):  # it has ended already, as will be seen
            process.stdin.write(json.dumps({**self._order, "number": number}) + "\n")
            process.stdin.flush()
        return process

    def _look(self) -> None:
        while not self._closing.wait(LOOK):
            for number, process in enumerate(self.processes):
                if number not in self._gone and process.poll() is not None:
                    self._replace(number, process)

    def _replace(self, number: int, process: subprocess.Popen[str]) -> None:
        """Starts it again or lets it go, and then warns, which may raise."""
        what = "it stays away"
        if self.restarted < self._restarts:
            self.restarted += 1
            try:
                self.processes[number] = self._start(number)
                what = "it is started again"
            except OSError as error:
                what = f"it could not be started again: {error}"
        if self.processes[number] is process:
            self._gone.add(number)
        with contextlib.suppress(RuntimeWarning):
            warnings.warn(
                f"actor {number} ended with exit code {process.returncode}: {what}",
                RuntimeWarning,
                stacklevel=2,
            )
