"""Ape-X runs of `accel-rl apex` and their files."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic

from accel_rl import train
from accel_rl.cli import clearing, runtime
from accel_rl.cli.stopping import stop_requests
from accel_rl.experiment import folder, layers
from accel_rl.io import Checkpoints, JsonLines, run_folder
from accel_rl.io.loggers import Row
from accel_rl.io.validation import validated
from accel_rl.io.values import Json
from accel_rl.remote.apex import (
    Actors,
    ApexTraining,
    LocalActors,
    LocalServers,
    RayActors,
    run_learners,
)
from accel_rl.remote.apex.network import TrainingNetwork

LAUNCH = "launch.json"
REPLAY = "replay"
CHECKPOINTS = 20  # of a training, unless checkpoints.every is set
_FILES = {
    run_folder.CONFIG: "every setting",
    LAUNCH: "options of processes; accel-rl resume reads it",
    run_folder.METRICS: "a row of metrics for each period",
    f"{folder.CHECKPOINTS}/": "the learner's newest states",
    f"{REPLAY}/": "snapshots and logs of the servers, with --durability log",
    run_folder.RESULTS: "final figures; written last",
}


class Interrupted(Exception):
    """SIGINT or SIGTERM, its argument, during a training, which can be resumed."""


@dataclasses.dataclass(frozen=True)
class Launch:
    """Options of `accel-rl apex` for processes; without `servers`, `shards` of them are started."""

    __pydantic_config__ = pydantic.ConfigDict(strict=True, extra="forbid")

    servers: tuple[str, ...] = ()
    shards: int = 1
    learners: int = 1
    ray: bool = False
    ray_address: str | None = None
    secret_file: str | None = None
    restarts: int = 3
    reconnect: float = 30.0
    network: str | None = None
    durability: Literal["none", "log"] = "none"


_LAUNCH = pydantic.TypeAdapter(Launch)


def read(directory: Path) -> tuple[ApexTraining, Launch]:
    """Read the training and the launch of a run's folder.

    Raises:
      ValueError: if a file is missing or damaged.
    """
    run_folder.require_kind(directory, "apex")
    runtime.import_gymnax()
    training = ApexTraining.from_tables(layers.read(directory / run_folder.CONFIG))
    found = run_folder.read_json(directory, LAUNCH)
    try:
        return training, validated(_LAUNCH, found, "")
    except ValueError as error:
        raise ValueError(f"{directory / LAUNCH} is damaged: {error}") from error


def execute(
    directory: Path,
    training: ApexTraining,
    launch: Launch,
    *,
    command: str,
    secret: bytes | None,
    resume: bool = False,
    on_row: Callable[[Row], None],
) -> dict[str, Json]:
    """Train, evaluate the final policy, and write the run's folder.

    Args:
      directory: the run's folder.
      training: from `load`, or from `read`.
      launch: processes to start.
      command: the command line, for records.
      secret: content of the launch's secret file.
      resume: continue from the folder's newest checkpoint.
      on_row: called with each row.

    Raises:
      ValueError: if the server has already had a training of that name.
      ImportError: if the server was not built, or Ray is not installed.
      Interrupted: after SIGINT or SIGTERM.
      RuntimeError: if actors, learners or servers end for good; a `RemoteError` if the server is
        lost.
    """
    runtime.import_gymnax()
    complete = training.experiment.configuration
    with contextlib.ExitStack() as stack:
        came = stack.enter_context(stop_requests())
        # Each start has keys, and versions of its policies, that no earlier one had.
        life = 0
        if resume:
            times = 1 + len(run_folder.read_manifest(directory).resumed)
            life = times * (launch.restarts + 1)
        given, servers, placed = list(launch.servers), None, None
        if launch.network is not None:
            placed = stack.enter_context(TrainingNetwork(launch.network, secret=secret))
            secret, given = placed.secret, [placed.address]
        elif not given:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="accel-rl-"))
            snapshots = None if launch.durability == "none" else directory / REPLAY
            if snapshots is not None and not resume:  # else they begin with an earlier run's items
                clearing.clear(directory)
                if snapshots.is_dir() and any(snapshots.iterdir()):
                    raise RuntimeError(f"{snapshots} has files that no run lists: remove them")
            servers = stack.enter_context(
                LocalServers(
                    Path(place),
                    launch.shards,
                    secret=secret,
                    restarts=launch.restarts,
                    snapshot_folder=snapshots,
                )
            )
            given = servers.addresses
        address = given if len(given) > 1 else given[0]
        options: dict[str, Any] = {"secret": secret, "reconnect": launch.reconnect, "life": life}
        actors: Actors[Any]
        if launch.ray:
            options["ray_address"] = launch.ray_address
            actors = RayActors(training, address, restarts=launch.restarts, **options)
        else:
            # Their processes, and those started again, are where the starting thread is.
            with contextlib.nullcontext() if placed is None else placed.actors():
                actors = LocalActors(training, address, restarts=launch.restarts, **options)
        stack.enter_context(actors)
        if placed is not None:
            stack.enter_context(placed.learner())
        # After servers and actors have started: a failed start keeps the earlier run. Before the
        # training: a folder that cannot be cleared fails early.
        _begin(directory, training, launch, command, resume)

        def ended() -> str | None:
            if number := came(0):
                raise Interrupted(number)
            return actors.gone() or (None if servers is None else servers.gone())

        settings, steps = complete.checkpoints, complete.training.steps
        every = settings.every or max(1, steps // CHECKPOINTS)
        starts = 0
        with _kept(directory / run_folder.METRICS, on_row) as (begin, keep):

            def begin_again(rows: list[Row]) -> None:
                nonlocal starts
                starts += 1
                begin(rows)

            done = run_learners(
                training,
                address,
                steps,
                launch.learners,
                period=complete.training.period,
                secret=secret,
                reconnect=launch.reconnect,
                restarts=launch.restarts,
                life=life,
                checkpoints=Checkpoints(
                    directory / folder.CHECKPOINTS, every=every, keep=settings.keep
                ),
                ended=ended,
                on_begin=begin_again,
                on_row=keep,
            )
        how = {
            "network": launch.network,
            "actor_restarts": actors.restarted,
            "learner_restarts": starts - 1,
            "server_restarts": 0 if servers is None else servers.restarted,
        }
    results = {**_figures(training, done), **how, **run_folder.made_with()}
    run_folder.write_json(directory / run_folder.RESULTS, results)
    return results


def _begin(
    directory: Path, training: ApexTraining, launch: Launch, command: str, resume: bool
) -> None:
    """Write the files that a run begins with."""
    if resume:
        (directory / run_folder.RESULTS).unlink(missing_ok=True)
        run_folder.continue_run(directory, command)
    else:
        clearing.clear(directory)
        seed = training.experiment.configuration.training.seed
        run_folder.begin_run(directory, "apex", command, [seed], _FILES)
    run_folder.write_json(directory / run_folder.CONFIG, training.tables)
    run_folder.write_json(directory / LAUNCH, dataclasses.asdict(launch))


def _figures(training: ApexTraining, done: train.PipelineResult) -> Mapping[str, Json]:
    """Play greedy episodes with the final policy; return what the training was worth."""
    complete, agent = training.experiment.configuration, training.experiment.program.agent
    play = train.evaluator(
        training.experiment.env,
        agent,
        episodes=complete.evaluation.episodes,
        max_steps=complete.evaluation.max_steps,
    )
    returns = np.asarray(play(agent.policy(done.state.agent), training.key))
    last = done.rows[-1]
    return {
        "steps": int(last["steps"]),
        "acted_steps": int(last["acted_steps"]),
        "updates": int(sum(row["updates"] for row in done.rows)),
        "seconds": float(last["seconds"]),
        "items_doubtful": int(last["items_doubtful"]),
        "evaluation": float(returns.mean()),
        "evaluation_returns": returns.tolist(),
    }


@contextlib.contextmanager
def _kept(
    path: Path, on_row: Callable[[Row], None]
) -> Iterator[tuple[Callable[[list[Row]], None], Callable[[Row], None]]]:
    """Yield `on_begin` and `on_row` that write rows at once: a failed training keeps its rows."""
    file = JsonLines(path)

    def begin(rows: list[Row]) -> None:
        file.close()
        file.begin(rows)

    def keep(row: Row) -> None:
        file.log({name: np.asarray(value).tolist() for name, value in row.items()})
        on_row(row)

    try:
        yield begin, keep
    finally:
        file.close()
