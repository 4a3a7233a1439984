"""Data-parallel learners on this machine, each in its own process."""

import base64
import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.io.loggers import Row
from accel_rl.remote.apex import mailbox, replicas
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.shard import Address, first_of
from accel_rl.train import PipelineResult, segments

LOOK = 0.1  # seconds between polls of the processes


def run_learners(
    training: ApexTraining,
    address: Address,
    steps: int,
    learners: int,
    *,
    secret: bytes | None = None,
    period: int | None = None,
    ended: Callable[[], str | None] = lambda: None,
    on_row: Callable[[Row], None] | None = None,
) -> PipelineResult:
    """Run `run_learner` in several processes that average their gradients.

    If one process fails, all are ended.

    Args:
      training: from `load`.
      address: of the server, or of several shards, in the same order for all processes.
      steps: environment steps of all actors; the server's limiter couples updates to them.
      learners: number of processes; each learns from an equal share of a batch.
      secret: shared secret, if the server has one.
      period: environment steps between rows; a hundredth of `steps` if None.
      ended: polled; a returned reason ends the training.
      on_row: called with each row.

    Raises:
      TypeError: if the address is not text, such as a `ReplayServer` of this process.
      ValueError: if the batch size is not a multiple of `learners`, `steps` leaves no updates, or
        the server has had a training of that name.
      RuntimeError: if a learner fails, or with the reason that `ended` returns.
      RemoteError: if the server cannot be reached.
    """
    # Check here, where messages reach the caller: of a failed process only the exit code is known.
    training.check_learners(learners)
    segments(training.schedule, steps, period)
    with ReplayClient(first_of(address), secret) as client:
        mailbox.check_free(client, training.run)
    with contextlib.closing(
        training.port(address, training.schedule.num_envs, secret, (0, learners))
    ) as port:
        program = training.program(port)
        template = jax.eval_shape(lambda: program.init(training.key, **training.hyper))
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.npz"
        order = {
            "training": training.tables,
            "address": address,
            "steps": steps,
            "secret": None if secret is None else base64.b64encode(secret).decode(),
            "period": period,
            "coordinator": f"127.0.0.1:{replicas.free_port()}",
            "count": learners,
            "state": str(state),
        }
        rows: list[Row] = []

        def told(row: Row) -> None:
            rows.append(row)
            if on_row is not None:
                on_row(row)

        with _running(order, learners) as processes:
            _wait(processes, ended, told)
        with np.load(state, allow_pickle=False) as found:
            leaves = [found[name] for name in found.files]
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    return PipelineResult(jax.tree.unflatten(jax.tree.structure(template), leaves), rows, [])


@contextlib.contextmanager
def _running(order: dict[str, Any], learners: int) -> Any:
    """Yield the started processes; end them on exit."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(learners):
            process = subprocess.Popen(
                [sys.executable, "-m", "accel_rl.remote.apex.process", "learner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if number == 0 else subprocess.DEVNULL,
                text=True,
                process_group=0,  # Ctrl-C reaches only this process, which ends them
            )
            processes.append(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended already; `_wait` reports it
                process.stdin.write(json.dumps({**order, "number": number}) + "\n")
                process.stdin.flush()
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
    on_row: Callable[[Row], None],
) -> None:
    """Pass on rows until all processes have ended; raise RuntimeError if one fails."""
    lines: queue.Queue[str] = queue.Queue()
    output = processes[0].stdout
    assert output is not None

    def read() -> None:
        for line in output:
            lines.put(line)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    while True:
        codes = [process.poll() for process in processes]
        with contextlib.suppress(queue.Empty):
            while True:
                on_row(json.loads(lines.get(timeout=LOOK)))
        if any(codes):
            dead = [
                f"learner {n} ended with exit code {code}" for n, code in enumerate(codes) if code
            ]
            raise RuntimeError(f"{', '.join(dead)}; learners share their fate")
        if all(code == 0 for code in codes) and not reading.is_alive() and lines.empty():
            return
        if (reason := ended()) is not None:
            raise RuntimeError(reason)
