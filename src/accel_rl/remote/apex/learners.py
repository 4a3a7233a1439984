"""Several learners on this machine that are one, each in a process of its own."""

import base64
import contextlib
import dataclasses
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
from accel_rl.remote.apex.settings import ApexSettings
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.shard import Address, as_text, first_of
from accel_rl.train import PipelineResult

LOOK = 0.1  # seconds between two looks at the processes


def run_learners(
    settings: ApexSettings,
    address: Address,
    steps: int,
    learners: int,
    *,
    secret: bytes | None = None,
    period: int | None = None,
    ended: Callable[[], str | None] = lambda: None,
    on_row: Callable[[Row], None] | None = None,
) -> PipelineResult:
    """As `run_learner`, with that many processes that average their gradients.

    They share their fate: where one dies, all are ended.

    Args:
      settings: the training's.
      address: of the server, or of several, the same and in the same order for all.
      steps: environment steps of all actors, which the server's limiter holds the updates to.
      learners: processes, of which each learns from an equal share of a batch.
      secret: what both sides know, if the server has one.
      period: environment steps between rows; a hundredth of `steps` if None.
      ended: asked all the time: why there is no use in going on, if so.
      on_row: called with each row.

    Raises:
      TypeError: if the address is no text, as that of a `ReplayServer` of this process.
      ValueError: if the batch is no multiple of `learners`, `steps` leaves nothing to learn, or the
        server has had a training of that name.
      RuntimeError: if a learner ended by itself, or `ended` says why.
      RemoteError: if the server cannot be reached.
    """
    told_address = as_text(address)
    # Here, where it can be said: of learners that end, only the exit code is known.
    settings.check_learners(learners)
    settings.check(steps, period)
    with ReplayClient(first_of(address), secret) as client:
        mailbox.check_free(client, settings.run)
    with contextlib.closing(
        settings.port(address, settings.num_envs, secret, (0, learners))
    ) as port:
        program = settings.program(port)
        template = jax.eval_shape(lambda: program.init(settings.key, **settings.hyper))
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.npz"
        order = {
            "settings": dataclasses.asdict(settings),
            "address": told_address,
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
    """The processes, which are gone in the end."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(learners):
            process = subprocess.Popen(
                [sys.executable, "-m", "accel_rl.remote.apex.replica_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if number == 0 else subprocess.DEVNULL,
                text=True,
                process_group=0,  # so that Ctrl-C comes to this process alone, which ends them
            )
            processes.append(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has ended already, as will be seen
                process.stdin.write(json.dumps({**order, "number": number}) + "\n")
                process.stdin.flush()
        yield processes
    finally:
        for process in processes:
            process.kill()  # those that have not ended wait for one that did
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
    """Until all have ended well."""
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
