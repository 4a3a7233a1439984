"""`accel-rl apex ENV`: Ape-X, actors and a learner around a replay server."""

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Overwrite
from accel_rl.cli.replay_server import SecretFile, note_readable, secret_of
from accel_rl.cli.train_agent import Config, Seed
from accel_rl.io.values import Json

if TYPE_CHECKING:
    from accel_rl.cli.apex_run import Launch
    from accel_rl.remote.apex import ApexTraining

EXAMPLES = console.examples(
    "accel-rl apex CartPole-v1 --actors 2",
    "accel-rl apex CartPole-v1 --actors 4 --steps 200000 replay.batch_size=128 --out runs/apex",
    "accel-rl apex CartPole-v1 --actors 2 --shards 2 --learners 2",
    "accel-rl apex CartPole-v1 --in-network",
)


# The values of `remote.apex.network.ServerPlacement`, whose import takes JAX.
Network = Literal["in-path", "beyond", "sockets"]
Durability = Literal["none", "log"]


class Launcher(enum.StrEnum):
    """Launchers of actor processes."""

    LOCAL = "local"
    RAY = "ray"


def apex(
    context: typer.Context,
    env: Annotated[str, typer.Argument(metavar="ENV", help="An environment's name.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[section.name=value]...", help="See docs/configuration.md."),
    ] = None,
    config: Config = None,
    actors: Annotated[
        int | None, typer.Option(min=1, help="Processes that act; they share schedule.num_envs.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Environment steps of all actors.")
    ] = None,
    seed: Seed = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help=(
                "A server that runs: tcp://, tls:// or udp://host:port; unix:, shm: or "
                "memif:/path. Several times: shards of one buffer."
            ),
        ),
    ] = None,
    shards: Annotated[
        int, typer.Option(min=1, help="Servers to start, each with a shard of the buffer.")
    ] = 1,
    learners: Annotated[
        int, typer.Option(min=1, help="Processes that learn, each from a part of the batch.")
    ] = 1,
    launcher: Annotated[
        Launcher, typer.Option(help="Where actors run: processes here, or nodes of a Ray cluster.")
    ] = Launcher.LOCAL,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of the cluster, or auto; else one of this machine."),
    ] = None,
    network: Annotated[
        Network | None,
        typer.Option(
            help=(
                "Train in network namespaces made for it, as root: the server in the path between "
                "actors and learner, one hop further, or there over the kernel's sockets."
            )
        ),
    ] = None,
    in_network: Annotated[
        bool, typer.Option("--in-network", help="The same as --network in-path.")
    ] = False,
    secret_file: SecretFile = None,
    restarts: Annotated[
        int,
        typer.Option(
            min=0,
            help=(
                "How often actors that fail are started again, in all; learners and servers of "
                "this command, too."
            ),
        ),
    ] = 3,
    reconnect: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="SECONDS", help="How long all wait for a server that is restarted."
        ),
    ] = 30.0,
    durability: Annotated[
        Durability,
        typer.Option(
            help="log: servers of this command that are started again have what they held."
        ),
    ] = "none",
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run's folder.")] = Path("runs/apex"),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Train DQN with actors in processes of their own.

    Starts a replay server (unless --server names one), actors and learners, and starts those
    again that fail. Writes `config.json`, `metrics.jsonl`, `results.json` and the learner's states
    to `checkpoints`. `accel-rl resume` goes on with a run that was stopped.
    """
    runtime.prepare_jax()
    from accel_rl.cli import apex_run, optional
    from accel_rl.io import run_folder
    from accel_rl.remote import apex as apex_trainings
    from accel_rl.remote.server import LEAST_SECRET_BYTES

    with console.bad_input():
        given = {"apex.num_actors": actors, "training.steps": steps, "training.seed": seed}
        given = {name: value for name, value in given.items() if value is not None}
        runtime.import_gymnax()
        chosen = apex_trainings.load(env, given, file=config, words=settings or ())
        chosen.check_learners(learners)
        secret = secret_of(secret_file)
        if secret is not None and len(secret) < LEAST_SECRET_BYTES:
            raise ValueError(
                f"--secret-file must hold {LEAST_SECRET_BYTES} bytes or more, got {len(secret)}"
            )
        if server and shards > 1:
            raise ValueError("--shards is for servers that are started here, not for --server")
        if ray_address is not None and launcher is not Launcher.RAY:
            raise ValueError("--ray-address is for --launcher ray")
        if in_network:
            if network not in (None, "in-path"):
                raise ValueError(f"--in-network is --network in-path, got --network {network}")
            network = "in-path"
        if network is not None and (server or shards > 1 or launcher is Launcher.RAY):
            raise ValueError("--network takes one server and actors that are started here")
        if durability == "log" and (server or network is not None):
            raise ValueError("--durability is of servers that are started here, without --network")
        if server:
            _check(server)
            _look(server[0], secret, chosen.run)
        run_folder.check_free(out, overwrite)
    if network is not None:
        parts = ["network namespaces"] + ["DPDK"] * (network != "sockets")
        if missing := list(filter(None, map(optional.describe_absence, parts))):
            console.note(f"accel-rl: --network {network} needs more: {'; '.join(missing)}")
            raise typer.Exit(1)
    note_readable(secret_file)
    launch = apex_run.Launch(
        servers=tuple(server or ()),
        shards=shards,
        learners=learners,
        ray=launcher is Launcher.RAY,
        ray_address=ray_address,
        secret_file=None if secret_file is None else str(secret_file.absolute()),
        restarts=restarts,
        reconnect=reconnect,
        network=network,
        durability=durability,
    )
    train(out, chosen, launch, console.command_line(context), json=json)


def train(
    out: Path,
    training: "ApexTraining",
    launch: "Launch",
    command: str,
    *,
    resume: bool = False,
    json: bool = False,
) -> None:
    """Run `apex_run.execute` with a progress bar; print the results.

    Raises:
      typer.Exit: with 1 if the training failed, 130 after SIGINT, 143 after SIGTERM.
    """
    from accel_rl.cli import apex_run

    secret = secret_of(None if launch.secret_file is None else Path(launch.secret_file))
    steps = training.experiment.configuration.training.steps
    with console.progress("training", float(steps)) as advance:
        before = 0

        def on_row(row: dict[str, Json]) -> None:
            nonlocal before
            advance(row["steps"] - before, f"return {row['episode_return']:.1f}")
            before = row["steps"]

        try:
            results = apex_run.execute(
                out,
                training,
                launch,
                command=command,
                secret=secret,
                resume=resume,
                on_row=on_row,
            )
        except apex_run.Interrupted as error:
            console.note(f"accel-rl resume {out} goes on from the last checkpoint")
            raise typer.Exit(128 + error.args[0]) from None
        except (RuntimeError, ImportError, ConnectionError) as error:  # no actors, server, cluster
            console.note(f"accel-rl: {error}")
            raise typer.Exit(1) from error
    if json:
        console.print_json(results)
    else:
        typer.echo(
            f"{results['steps']:,} steps, {results['updates']:,} updates in "
            f"{results['seconds']:.1f} s; greedy return {results['evaluation']:.1f}; in {out}"
        )


def _check(servers: list[str]) -> None:
    """Raise ValueError if a server's address is malformed or given twice."""
    from accel_rl.remote.links import parse_address

    for server in servers:
        parse_address(server)
    if len(set(servers)) < len(servers):
        raise ValueError(f"--server must name each server once, got {', '.join(servers)}")


def _look(server: str, secret: bytes | None, run: str) -> None:
    """Raise ValueError if no server listens there, or it has had a training of that name."""
    from accel_rl.remote import RemoteError, ReplayClient
    from accel_rl.remote.apex import mailbox

    try:
        with ReplayClient(server, secret) as client:
            mailbox.check_free(client, run)
    except RemoteError as error:
        raise ValueError(f"--server: {error}") from error
