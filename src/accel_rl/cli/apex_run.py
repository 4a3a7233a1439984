"""Ape-X runs of `accel-rl apex` and their files."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel_rl import remote, train
from accel_rl.cli import clearing, runtime
from accel_rl.experiment import folder
from accel_rl.io import Checkpoints, JsonLines, run_folder
from accel_rl.io.loggers import Row
from accel_rl.io.values import Json
from accel_rl.remote.apex import (
    Actors,
    ApexTraining,
    LocalActors,
    RayActors,
    run_learner,
    run_learners,
)

_FILES = {
    run_folder.CONFIG: "every setting",
    run_folder.METRICS: "a row of metrics for each period",
    f"{folder.CHECKPOINTS}/": "the last state",
    run_folder.RESULTS: "final figures; written last",
}


def execute(
    directory: Path,
    training: ApexTraining,
    *,
    command: str,
    servers: Sequence[str],
    shards: int,
    learners: int,
    ray: bool,
    ray_address: str | None,
    secret: bytes | None,
    restarts: int,
    on_row: Callable[[Row], None],
) -> dict[str, Json]:
    """Train, evaluate the final policy, and write the run's folder.

    Options are those of `accel-rl apex`; without `servers`, `shards` of them are started.

    Raises:
      ValueError: if the server has already had a training of that name.
      ImportError: if the server was not built, or `ray` is True and Ray is not installed.
      RuntimeError: if all actors have ended; a `RemoteError` if the server is lost.
    """
    runtime.import_gymnax()
    complete, agent = training.experiment.configuration, training.experiment.program.agent
    with contextlib.ExitStack() as stack:
        given = list(servers) or _own_servers(stack, shards, secret)
        address = given if len(given) > 1 else given[0]
        actors: Actors[Any]
        if ray:
            actors = RayActors(
                training, address, secret=secret, restarts=restarts, ray_address=ray_address
            )
        else:
            actors = LocalActors(training, address, secret=secret, restarts=restarts)
        stack.enter_context(actors)
        # After servers and actors have started: a failed start keeps the earlier run. Before the
        # training: a folder that cannot be cleared fails early.
        clearing.clear(directory)
        run_folder.begin_run(directory, "apex", command, [complete.training.seed], _FILES)
        run_folder.write_json(directory / run_folder.CONFIG, training.tables)
        learn: Callable[..., train.PipelineResult] = run_learner
        if learners > 1:
            learn = functools.partial(run_learners, learners=learners)
        with _kept(directory / run_folder.METRICS, on_row) as keep:
            done = learn(
                training,
                address,
                complete.training.steps,
                period=complete.training.period,
                secret=secret,
                ended=actors.gone,
                on_row=keep,
            )
        restarted = actors.restarted
    play = train.evaluator(
        training.experiment.scored,
        agent,
        episodes=complete.evaluation.episodes,
        max_steps=complete.evaluation.max_steps,
    )
    returns = np.asarray(play(agent.policy(done.state.agent), training.key))
    last = done.rows[-1]
    results = {
        "steps": int(last["steps"]),
        "acted_steps": int(last["acted_steps"]),
        "updates": int(sum(row["updates"] for row in done.rows)),
        "seconds": float(last["seconds"]),
        "actor_restarts": restarted,
        "evaluation": float(returns.mean()),
        "evaluation_returns": returns.tolist(),
        **run_folder.made_with(),
    }
    saved = Checkpoints(directory / folder.CHECKPOINTS)
    with saved.writing():
        saved.save(done.state, training.tables, done.rows)
    run_folder.write_json(directory / run_folder.RESULTS, results)
    return results


def _own_servers(stack: contextlib.ExitStack, number: int, secret: bytes | None) -> list[str]:
    """Start servers that other users of this machine cannot reach; return their addresses.

    A port is open to all of them, and asks for a secret; a socket in a folder of this user's need
    not.
    """
    place = stack.enter_context(tempfile.TemporaryDirectory(prefix="accel-rl-"))

    def start(each: int) -> remote.ReplayServer:
        if secret is not None:
            return remote.ReplayServer(secret=secret)
        return remote.ReplayServer(None, unix_path=f"{place}/{each}")

    return [stack.enter_context(start(each)).address for each in range(number)]


@contextlib.contextmanager
def _kept(path: Path, on_row: Callable[[Row], None]) -> Iterator[Callable[[Row], None]]:
    """Yield a function that writes each row at once, so that a failed training keeps its rows."""
    file = JsonLines(path)
    file.begin([])

    def keep(row: Row) -> None:
        file.log({name: np.asarray(value).tolist() for name, value in row.items()})
        on_row(row)

    try:
        yield keep
    finally:
        file.close()
