"""Learner on this machine in one or several processes, restarted from its checkpoints."""

import contextlib
import itertools
import json
import queue
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_rl.arguments import whole, within
from accel_rl.io import Checkpoints
from accel_rl.io.loggers import Row
from accel_rl.remote.apex import mailbox, replicas, states
from accel_rl.remote.apex.acting import RECONNECT
from accel_rl.remote.apex.roles import start_role
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.recovery import retry_connect
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import PipelineResult, TrainState, segments

LOOK = 0.1  # seconds between polls of the processes


class _Failed(RuntimeError):
    """Learner process that ended by itself."""


def run_learners(
    training: ApexTraining,
    address: Address,
    steps: int,
    learners: int,
    *,
    secret: bytes | None = None,
    period: int | None = None,
    reconnect: float = RECONNECT,
    restarts: int = 0,
    life: int = 0,
    checkpoints: Checkpoints | None = None,
    ended: Callable[[], str | None] = lambda: None,
    on_begin: Callable[[list[Row]], None] = lambda rows: None,
    on_row: Callable[[Row], None] | None = None,
) -> PipelineResult:
    """Run `run_learner` in processes that average their gradients.

    If one process fails, all are ended, and all are started again from the newest checkpoint.

    Args:
      training: from `load`.
      address: of the server, or of several shards, in the same order for all processes.
      steps: environment steps of all actors; the server's limiter couples updates to them.
      learners: number of processes; each learns from an equal share of a batch.
      secret: shared secret, if the server has one.
      period: environment steps between rows; a hundredth of `steps` if None.
      reconnect: seconds to wait for a server that is restarted.
      restarts: how often learners that fail are started again, each time with a RuntimeWarning.
      life: number of earlier starts; 0 refuses a training that the server has had.
      checkpoints: the training continues from the newest and writes the next ones, also at its end.
        None: it always begins anew.
      ended: polled; a returned reason ends the training.
      on_begin: called before each start, with the rows that the checkpoint has; later ones were
        undone.
      on_row: called with each row.

    Raises:
      TypeError: if the address is not text, such as a `ReplayServer` of this process.
      ValueError: if the batch size is not a multiple of `learners`, `steps` leaves no updates, or
        `life` is 0 and the server has had a training of that name.
      RuntimeError: if learners fail once more, or with the reason that `ended` returns.
      RemoteError: if the server cannot be reached.
    """
    # Check here, where messages reach the caller: of a failed process only the exit code is known.
    training.check_learners(learners)
    segments(training.schedule, steps, period)
    whole("restarts", restarts, 0)
    whole("life", life, 0)
    within("reconnect", reconnect, "[0, inf)")
    if life == 0:
        where = first_of(address)
        with retry_connect(lambda: ReplayClient(where, secret), reconnect) as client:
            mailbox.check_free(client, training.run)
    order = {
        "training": training.tables,
        "address": address,
        "steps": steps,
        "secret": None if secret is None else secret.hex(),
        "period": period,
        "reconnect": reconnect,
        "count": learners,
        "every": None if checkpoints is None else checkpoints.every,
    }
    with contextlib.ExitStack() as stack:
        if checkpoints is not None:
            stack.enter_context(checkpoints.writing())
        for restarted in itertools.count():
            attempt = _Attempt(training, checkpoints, on_row)
            on_begin(list(attempt.rows))
            if attempt.rows and attempt.rows[-1]["steps"] >= steps:
                return attempt.result()
            try:
                attempt.run({**order, "life": life + restarted}, ended)
                return attempt.result()
            except _Failed as error:
                if restarted == restarts:
                    raise RuntimeError(str(error)) from error
                with contextlib.suppress(RuntimeWarning):  # a filter may turn it into an error
                    warnings.warn(f"{error}; they start again", RuntimeWarning, stacklevel=2)
    raise AssertionError


class _Attempt:
    """Learner processes from a checkpoint to their end.

    Attributes:
      rows: all rows so far, also those of the checkpoint.
      state: the newest state.
    """

    def __init__(
        self,
        training: ApexTraining,
        checkpoints: Checkpoints | None,
        on_row: Callable[[Row], None] | None,
    ) -> None:
        self._training, self._checkpoints, self._on_row = training, checkpoints, on_row
        self.rows: list[Row] = []
        self.state: TrainState | None = None
        newest = None if checkpoints is None else checkpoints.newest()
        if newest is not None:
            self.rows = newest.rows
            self.state = newest.state(states.template(training))
        self._seconds = self.rows[-1]["seconds"] if self.rows else 0.0

    def run(self, order: dict[str, Any], ended: Callable[[], str | None]) -> None:
        """Start the processes and wait for their end; raise _Failed if one fails."""
        with tempfile.TemporaryDirectory() as folder:
            start = None
            if self.state is not None:
                start = str(Path(folder) / "start.npz")
                states.write(Path(start), self.state)
            # A port of its own for each attempt: the last one may still be in use.
            coordinator = f"127.0.0.1:{replicas.free_port()}"
            order = {**order, "folder": folder, "start": start, "coordinator": coordinator}
            with _running(order, order["count"]) as processes:
                _wait(processes, ended, self._told)

    def result(self) -> PipelineResult:
        """Return the last state and all rows."""
        assert self.state is not None
        return PipelineResult(self.state, self.rows, [])

    def _told(self, line: dict[str, Any]) -> None:
        if "state" in line:
            self._keep(Path(line["state"]))
            return
        row = line["row"] | {"seconds": line["row"]["seconds"] + self._seconds}
        self.rows.append(row)
        if self._on_row is not None:
            self._on_row(row)

    def _keep(self, path: Path) -> None:
        """Save a state that comes after all rows so far."""
        self.state = states.read(path, self._training)
        path.unlink()
        if self._checkpoints is None:
            return
        try:
            self._checkpoints.save(self.state, self._training.tables, self.rows)
        except OSError as error:  # such as a full disk: the next one is tried when it is due
            warnings.warn(f"no checkpoint was written: {error}", RuntimeWarning, stacklevel=2)


@contextlib.contextmanager
def _running(order: dict[str, Any], learners: int) -> Any:
    """Yield the started processes; end them on exit."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(learners):
            own = json.dumps({**order, "number": number})
            stdout = subprocess.PIPE if number == 0 else subprocess.DEVNULL
            processes.append(start_role("learner", own, stdout))
        yield processes
    finally:
        for process in processes:
            process.kill()  # a live one may wait for a dead one
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()


def _wait(
    processes: list[subprocess.Popen[str]],
    ended: Callable[[], str | None],
    on_line: Callable[[dict[str, Any]], None],
) -> None:
    """Pass on lines until all processes have ended; raise _Failed if one fails."""
    lines: queue.Queue[str] = queue.Queue()
    output = processes[0].stdout
    assert output is not None

    def read() -> None:
        for line in output:
            if line.endswith("\n"):  # else it was killed in the middle
                lines.put(line)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    while True:
        codes = [process.poll() for process in processes]
        if codes[0] is not None:
            reading.join()  # nothing that the first has said may be missed
        with contextlib.suppress(queue.Empty):
            while True:
                on_line(json.loads(lines.get(timeout=LOOK)))
        if any(codes):
            dead = [
                f"learner {n} ended with exit code {code}" for n, code in enumerate(codes) if code
            ]
            raise _Failed(f"{', '.join(dead)}; learners share their fate")
        if all(code == 0 for code in codes) and not reading.is_alive() and lines.empty():
            return
        if (reason := ended()) is not None:
            raise RuntimeError(reason)
